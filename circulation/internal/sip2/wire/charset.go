package wire

import (
	"strings"
	"unicode"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// CharacterSet is how a terminal writes characters.
type CharacterSet string

// The character sets. CP850 is the tradition.
const (
	CP850       CharacterSet = "cp850"
	ISO88591    CharacterSet = "iso-8859-1"
	Windows1252 CharacterSet = "windows-1252"
	UTF8        CharacterSet = "utf-8"
)

// charmapOf returns nil for UTF-8, and CP850 for a name that is none.
func (s CharacterSet) charmap() *charmap.Charmap {
	switch s {
	case UTF8:
		return nil
	case ISO88591:
		return charmap.ISO8859_1
	case Windows1252:
		return charmap.Windows1252
	default:
		return charmap.CodePage850
	}
}

// decode makes text of bytes. Bytes that are no characters become U+FFFD, which is in no
// barcode. So do those that are controls in a table and letters in CP850.
func (s CharacterSet) decode(content []byte) string {
	m := s.charmap()
	if m == nil {
		return strings.ToValidUTF8(string(content), string(unicode.ReplacementChar))
	}
	var b strings.Builder
	for _, c := range content {
		r := m.DecodeByte(c)
		if c > unicode.MaxASCII && unicode.IsControl(r) {
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
	}
	return b.String()
}

// encode makes bytes of text. A character that the set lacks becomes a plain letter, or a
// question mark.
func (s CharacterSet) encode(text string) []byte {
	m := s.charmap()
	if m == nil {
		return []byte(text)
	}
	encoded := make([]byte, 0, len(text))
	for _, r := range text {
		b, known := m.EncodeRune(r)
		if !known {
			b = plain(r, m)
		}
		encoded = append(encoded, b)
	}
	return encoded
}

// plain returns the letter without its mark, in a set that lacks r.
func plain(r rune, m *charmap.Charmap) byte {
	letter, known := likeness(r)
	if !known {
		letter = []rune(norm.NFD.String(string(r)))[0]
	}
	b, known := m.EncodeRune(letter)
	if !known {
		return '?'
	}
	return b
}

// likeness returns what looks like a character that Unicode does not decompose.
func likeness(r rune) (rune, bool) {
	pairs := []rune("łlŁLđdĐDøoØOıiħhĦHŧtŦT–-—-‘'’'‚'“\"”\"„\"‹<›>€E….\u2010-\u2011-")
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == r {
			return pairs[i+1], true
		}
	}
	return 0, false
}
