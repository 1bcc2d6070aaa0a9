package cql

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// separators returns the characters that separate words, as ranges: ASCII's and Latin-1's
// marks and the punctuation of Unicode. It is no character class of PostgreSQL, because
// the database's locale decides about those: in the C locale, ü is no letter.
func separators() [][2]rune {
	return [][2]rune{{0x01, '/'}, {':', '@'}, {'[', '`'}, {'{', 0xBF}, {0x2000, 0x206F}, {0x3000, 0x303F}}
}

func separatorClass() string {
	var sb strings.Builder
	for _, r := range separators() {
		fmt.Fprintf(&sb, `\u%04X-\u%04X`, r[0], r[1])
	}
	return sb.String()
}

// splitWords cuts a term at blanks into groups of words that belong together, and each
// group at the other separators. A wildcard belongs to its word, unless it is escaped.
func splitWords(term string) []string {
	term = rewriteRunes(term, func(sb *strings.Builder, r rune, escaped bool) {
		separates := slices.ContainsFunc(separators(), func(s [2]rune) bool { return s[0] <= r && r <= s[1] })
		switch {
		case !escaped && (r == '*' || r == '?'), !separates:
			sb.WriteRune(r)
		case unicode.IsSpace(r):
			sb.WriteByte(' ')
		default:
			sb.WriteByte('-')
		}
	})
	var groups []string
	for group := range strings.FieldsSeq(term) {
		if parts := strings.FieldsFunc(group, func(r rune) bool { return r == '-' }); len(parts) > 0 {
			groups = append(groups, strings.Join(parts, " "))
		}
	}
	return groups
}

// likePattern turns a term into a LIKE pattern and reports whether it has wildcards.
func likePattern(term string) (pattern string, masked bool) {
	pattern = rewriteRunes(term, func(sb *strings.Builder, r rune, escaped bool) {
		switch {
		case r == '*' && !escaped:
			masked = true
			sb.WriteByte('%')
		case r == '?' && !escaped:
			masked = true
			sb.WriteByte('_')
		case r == '%' || r == '_' || r == '\\':
			sb.WriteByte('\\')
			sb.WriteRune(r)
		default:
			sb.WriteRune(r)
		}
	})
	return pattern, masked
}

// unescape removes the backslashes that escape.
func unescape(term string) string {
	return rewriteRunes(term, func(sb *strings.Builder, r rune, _ bool) { sb.WriteRune(r) })
}

// rewriteRunes rewrites a term rune by rune; a backslash escaped the escaped ones.
func rewriteRunes(term string, write func(sb *strings.Builder, r rune, escaped bool)) string {
	var sb strings.Builder
	escaped := false
	for _, r := range term {
		if r == '\\' && !escaped {
			escaped = true
			continue
		}
		write(&sb, r, escaped)
		escaped = false
	}
	return sb.String()
}
