package schemas

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseChangeReason reads the reason for a change as people write it: without the
// white space around it, and with \n for each line break. It may be empty. The
// error says what a reason must be, without naming it.
func ParseChangeReason(s string) (string, error) {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
	unfit := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	switch n := utf8.RuneCountInString(s); {
	case n > MaxChangeReason:
		return "", fmt.Errorf("must have at most %d characters, not %d", MaxChangeReason, n)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unfit):
		return "", errors.New("must have no control characters but line breaks and tabs")
	}
	return s, nil
}
