//go:build !linux

package devpostgres

// memoryRoot returns "", because only Linux has a folder in memory that all users can enter.
func memoryRoot() string { return "" }
