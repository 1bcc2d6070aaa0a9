// Package redact hides ids and barcodes in what is logged.
package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mask hides a patron's id or barcode but for its end, which is enough to compare
// log lines and too little to know the patron: four characters, fewer of one that
// has less than twelve, and none of one that has less than five.
func Mask(id string) string {
	const hidden = "****"
	runes := []rune(id)
	if len(runes) < 5 {
		return hidden
	}
	return hidden + string(runes[len(runes)-min(4, len(runes)/3):])
}

// Hide replaces id, a patron's or an item's id or barcode, where text names it:
// as a whole word, whatever its case. One that a message may have for other
// reasons, such as the 15 of a limit, counts only after the word barcode, as in
// FOLIO's "(Barcode: 15)" and "with barcode 15".
func Hide(text, id, by string) string {
	if id == "" {
		return text
	}
	var out strings.Builder
	kept := 0 // what is in out of text
	for i := 0; i+len(id) <= len(text); i++ {
		end := i + len(id)
		if i < kept || !strings.EqualFold(text[i:end], id) || !names(text, i, end) {
			continue
		}
		out.WriteString(text[kept:i])
		out.WriteString(by)
		kept = end
	}
	return out.String() + text[kept:]
}

// names tells whether text[begin:end], which reads like an id, is meant as one.
func names(text string, begin, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:begin])
	after, _ := utf8.DecodeRuneInString(text[end:])
	if ofID(before) || ofID(after) {
		return false
	}
	return unmistakable(text[begin:end]) || afterBarcode(text[:begin])
}

// unmistakable tells whether an id is neither a word nor a short number.
func unmistakable(id string) bool {
	return utf8.RuneCountInString(id) >= 6 && strings.ContainsAny(id, "0123456789")
}

// ofID tells whether an id may go on with r. At either end of a text r is
// utf8.RuneError, with which none does.
func ofID(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_'
}

func afterBarcode(text string) bool {
	text = strings.ToLower(strings.TrimRight(text, `"'“‘`))
	return strings.HasSuffix(text, "barcode ") || strings.HasSuffix(text, "barcode: ")
}
