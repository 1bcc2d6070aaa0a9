package texts

import (
	"slices"
	"strings"
	"sync"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"

	"checkoutlock/schemas/convert"
)

// English is the language of the source texts.
const English = "en"

// Pseudo is the language that shows what overflows: English, longer and in brackets. It is made
// from the English catalogue.
const Pseudo = "en-XA"

// Language is one in which the catalogues are complete.
type Language struct {
	Tag  string // BCP 47
	Name string // in the language itself
}

// Languages are those that a reader can choose. The first one is for all others.
var Languages = []Language{{English, "English"}, {"de", "Deutsch"}, {"es", "Español"}}

// IsLanguage reports whether tag is one of Languages, or Pseudo.
func IsLanguage(tag string) bool {
	return tag == Pseudo || slices.ContainsFunc(Languages, func(l Language) bool { return l.Tag == tag })
}

var matcher = language.NewMatcher(convert.All(Languages, func(l Language) language.Tag { return language.MustParse(l.Tag) }))

// MatchLanguage returns the tag of the language that suits an Accept-Language header best.
func MatchLanguage(accept string) string {
	_, i := language.MatchStrings(matcher, accept)
	return Languages[i].Tag
}

// accents replace the vowels of Pseudo. Two for one make a text about 40 % longer, as German is.
var accents = strings.NewReplacer("a", "áá", "e", "éé", "i", "íí", "o", "óó", "u", "úú", "A", "Á", "E", "É", "I", "Í", "O", "Ó", "U", "Ú")

// pseudo is the catalogue of Pseudo. It is made at its first use, because only those who check pages
// read it.
var pseudo = sync.OnceValue(func() *i18n.Bundle {
	b := i18n.NewBundle(language.English)
	english, err := i18n.NewBundle(language.English).LoadMessageFileFS(files, English+".json")
	if err == nil {
		err = b.AddMessages(language.English, lengthen(english.Messages)...)
	}
	if err != nil {
		panic(err) // the build is broken
	}
	return b
})

// lengthen returns the messages of Pseudo. Placeholders stay.
func lengthen(messages []*i18n.Message) []*i18n.Message {
	change := func(text string) string {
		if text == "" {
			return ""
		}
		out, from := "", 0
		for _, place := range placeholder.FindAllStringIndex(text, -1) {
			out += accents.Replace(text[from:place[0]]) + text[place[0]:place[1]]
			from = place[1]
		}
		return "⟦" + out + accents.Replace(text[from:]) + "⟧"
	}
	return convert.All(messages, func(m *i18n.Message) *i18n.Message {
		return &i18n.Message{ID: m.ID, One: change(m.One), Other: change(m.Other)}
	})
}
