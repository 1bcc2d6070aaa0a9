package postgres

import (
	"crypto/sha256"
	"strconv"
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

// latestConflict is the latest of the earlier claims in the namespace $1 that conflict with
// the resources mine. It looks at their paths, at those that they begin with, and at the ranges
// of writes and reads below each path. A read looks only at writes, so that readers of one path
// do not look at each other.
func latestConflict(mine, earlier string) string {
	at := `(SELECT r.number FROM {schema}.claim_resource r
                WHERE r.namespace = $1::text AND r.key = substring(mine.key FROM 1 FOR cut) AND ` + earlier
	const latest = ` ORDER BY r.number DESC LIMIT 1)`
	below := `(SELECT max(r.number) FROM {schema}.claim_resource r
                WHERE r.namespace = $1::text AND r.key > mine.key AND r.key < mine.key || '\x01'::bytea AND ` + earlier
	return `(
        SELECT max(greatest(
               ` + at + ` AND r.write` + latest + `,
               CASE WHEN mine.write THEN ` + at + ` AND NOT r.write` + latest + ` END,
               CASE WHEN cut = length(mine.key) THEN greatest(
               ` + below + ` AND r.write),
               CASE WHEN mine.write THEN ` + below + ` AND NOT r.write) END) END))
          FROM ` + mine + ` CROSS JOIN generate_series(0, length(mine.key), ` + strconv.Itoa(segmentKeySize) + `) cut)`
}
