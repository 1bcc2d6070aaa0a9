//go:build race

package integration_test

// raceDetector reports whether the race detector slows the test.
const raceDetector = true
