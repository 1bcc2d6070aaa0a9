// Package redact hides ids and barcodes in what is logged.
package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mask hides a patron's id or barcode except its last four characters, or a third of a
// short one. These suffice to compare log lines, and do not identify the patron. Of fewer
// than five characters it shows none.
func Mask(id string) string {
	const hidden = "****"
	runes := []rune(id)
	if len(runes) < 5 {
		return hidden
	}
	return hidden + string(runes[len(runes)-min(4, len(runes)/3):])
}

// Hide replaces id, a patron's or an item's id or barcode, where text names it as a
// whole word, in any case. A word or a short number, which may also be a limit, counts only as the
// whole text, or after the word barcode, as in FOLIO's "(Barcode: 15)" and "with barcode 15".
func Hide(text, id, by string) string {
	if id == "" {
		return text
	}
	var out strings.Builder
	kept := 0 // bytes of text that are in out
	for i := 0; i+len(id) <= len(text); i++ {
		end := i + len(id)
		if i < kept || !strings.EqualFold(text[i:end], id) || !isNamed(text, i, end) {
			continue
		}
		out.WriteString(text[kept:i])
		out.WriteString(by)
		kept = end
	}
	return out.String() + text[kept:]
}

// MaskIn masks the ids and barcodes where Hide finds them in text.
func MaskIn(text string, ids ...string) string {
	for _, id := range ids {
		text = Hide(text, id, Mask(id))
	}
	return text
}

// isNamed reports whether text[begin:end], which equals an id, means the id.
func isNamed(text string, begin, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:begin])
	after, _ := utf8.DecodeRuneInString(text[end:])
	if continuesID(before) || continuesID(after) {
		return false
	}
	return end-begin == len(text) || isDistinct(text[begin:end]) || followsBarcode(text[:begin])
}

// isDistinct reports whether an id is neither a word nor a short number.
func isDistinct(id string) bool {
	return utf8.RuneCountInString(id) >= 6 && strings.ContainsAny(id, "0123456789")
}

// continuesID reports whether r can be part of an id. At either end of a text r is
// utf8.RuneError, which cannot.
func continuesID(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_'
}

func followsBarcode(text string) bool {
	text = strings.ToLower(strings.TrimRight(text, `"'“‘`))
	return strings.HasSuffix(text, "barcode ") || strings.HasSuffix(text, "barcode: ")
}

// Cut returns the first most characters of text, and the length of a longer text, else 0.
func Cut(text string, most int) (head string, length int) {
	if len(text) <= most {
		return text, 0
	}
	for i := range text {
		if length == most {
			head = text[:i]
		}
		length++
	}
	if length <= most {
		return text, 0
	}
	return head, length
}
