package postgres

import (
	"crypto/sha256"
	"strings"

	"checkoutlock/resource-locks/internal/engine"
)

// segmentKeySize is how many bytes of a key stand for a segment.
const segmentKeySize = 16

// encodeResources returns paths, modes and keys, each path and mode once. A path is its segments,
// each with a zero byte behind it. No segment has one.
//
// Paths are compared by their keys, which fit an index: for each segment a zero byte and the
// beginning of its SHA-256. Two segments with the same would only wait for each other.
func encodeResources(resources []engine.Resource) (paths [][]byte, writes []bool, keys [][]byte) {
	seen := map[string]bool{}
	for _, r := range resources {
		path, key := []byte{}, []byte{} // not nil, which is NULL
		for _, segment := range r.Path {
			path = append(append(path, segment...), 0)
			sum := sha256.Sum256([]byte(segment))
			key = append(append(key, 0), sum[:segmentKeySize-1]...)
		}
		taken := string(path) + map[bool]string{false: "r", true: "w"}[r.Write]
		if !seen[taken] {
			seen[taken] = true
			paths, writes, keys = append(paths, path), append(writes, r.Write), append(keys, key)
		}
	}
	return paths, writes, keys
}

func decodeResources(paths [][]byte, writes []bool) []engine.Resource {
	resources := make([]engine.Resource, len(paths))
	for i, path := range paths {
		resources[i].Write = writes[i]
		if text, ok := strings.CutSuffix(string(path), "\x00"); ok {
			resources[i].Path = strings.Split(text, "\x00")
		}
	}
	return resources
}
