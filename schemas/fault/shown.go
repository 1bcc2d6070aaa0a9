package fault

import (
	"encoding/json"
	"fmt"
	"strings"
)

const shownLength = 100 // characters of an offending value that an error repeats

// Shown returns a value as an error repeats it: a string unquoted, everything else as
// JSON. It replaces bytes that are no UTF-8 and keeps at most 100 characters.
func Shown(v any) string {
	if s, ok := v.(string); ok {
		return shorten(s)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	return shorten(string(raw))
}

func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD") // also what came in a URL goes out as text
	if runes := []rune(s); len(runes) > shownLength {
		return string(runes[:shownLength]) + "…"
	}
	return s
}
