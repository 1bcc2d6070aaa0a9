// Package texts has what people read, in catalogues by language and code. A library may replace
// each text of its machines by its own.
//
// The files en.json, de.json and es.json are the catalogues, in the form of go-i18n. English is
// complete; other languages fall back to it. A placeholder such as {limit} stands for a value. A
// text with plural forms follows the value {count}, or else the whole number in its values.
package texts

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"github.com/nicksnyder/go-i18n/v2/i18n/template"
	"golang.org/x/text/language"
)

//go:embed en.json de.json es.json
var files embed.FS

// Code names a text in every language.
type Code string

// Values are what replaces the placeholders of a text, by name.
type Values map[string]string

// Text is what to say, in no language yet.
type Text struct {
	Code   Code
	Values Values
}

// Catalogue has the texts of a library in all languages. It never changes, so it is safe for
// concurrent use.
type Catalogue struct {
	bundle *i18n.Bundle
	// placeholders are those of the English texts that a library may replace, by code.
	placeholders map[string][]string
}

// replaceable begins the codes that a library may replace: those of its machines.
const replaceable = "machine."

// Delivered returns the catalogues of the files. The first call reads them, because many instances
// never say a text.
func Delivered() *Catalogue { return delivered() }

var delivered = sync.OnceValue(func() *Catalogue {
	c, err := build(nil)
	if err != nil {
		panic(err) // the build is broken
	}
	return c
})

// Replace returns the delivered catalogues with a library's own texts over them. own is JSON: an
// object of languages (BCP 47), each with texts by code as the files have them. It may add a
// language. The error names everything that is wrong: unknown codes, unknown placeholders, and what
// is no text.
func Replace(own json.RawMessage) (*Catalogue, error) {
	var byLanguage map[string]json.RawMessage
	if err := json.Unmarshal(own, &byLanguage); err != nil {
		return nil, fmt.Errorf("texts must be an object of languages: %w", err)
	}
	return build(byLanguage)
}

func build(own map[string]json.RawMessage) (*Catalogue, error) {
	c := &Catalogue{bundle: i18n.NewBundle(language.English), placeholders: map[string][]string{}}
	for _, l := range Languages {
		added, err := c.bundle.LoadMessageFileFS(files, l.Tag+".json")
		if err != nil {
			return nil, fmt.Errorf("reading the %s catalogue: %w", l.Tag, err)
		}
		for _, m := range added.Messages {
			if l.Tag == English && strings.HasPrefix(m.ID, replaceable) {
				c.placeholders[m.ID] = listPlaceholders(m)
			}
		}
	}
	var wrong []error
	for _, lang := range slices.Sorted(maps.Keys(own)) {
		wrong = append(wrong, c.add(lang, own[lang]))
	}
	return c, errors.Join(wrong...)
}

// add puts a library's texts of one language over the delivered ones.
func (c *Catalogue) add(lang string, own json.RawMessage) error {
	tag, err := language.Parse(lang)
	if err != nil {
		return fmt.Errorf("%q is no language: %w", lang, err)
	}
	messages, err := i18n.ParseMessageFileBytes(own, tag.String()+".json", nil)
	if err != nil {
		return fmt.Errorf("texts in %s: %w", lang, err)
	}
	var wrong []error
	for _, m := range messages.Messages {
		known, exists := c.placeholders[m.ID]
		if !exists {
			wrong = append(wrong, fmt.Errorf("texts in %s: %q is no code of a text", lang, m.ID))
			continue
		}
		if m.Other == "" {
			wrong = append(wrong, fmt.Errorf("texts in %s: %s is empty, or lacks the form \"other\"", lang, m.ID))
		}
		for _, p := range listPlaceholders(m) {
			if !slices.Contains(known, p) {
				wrong = append(wrong, fmt.Errorf("texts in %s: %s has the placeholder {%s}, allowed are %q", lang, m.ID, p, known))
			}
		}
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	return c.bundle.AddMessages(tag, messages.Messages...)
}

// placeholder is a value's place in a text.
var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// listPlaceholders returns the placeholders of all forms of a text, each once.
func listPlaceholders(m *i18n.Message) []string {
	var found []string
	for _, form := range []string{m.Zero, m.One, m.Two, m.Few, m.Many, m.Other} {
		for _, match := range placeholder.FindAllStringSubmatch(form, -1) {
			found = append(found, match[1])
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Say returns a text in the first of the languages that has it, else in English. An unknown code is
// returned as it is, and so is "".
func (c *Catalogue) Say(t Text, languages ...string) string {
	said := i18n.NewLocalizer(c.bundle, languages...)
	if len(languages) > 0 && languages[0] == Pseudo {
		said = i18n.NewLocalizer(pseudo(), English)
	}
	config := &i18n.LocalizeConfig{MessageID: string(t.Code), TemplateData: t.Values, TemplateParser: fillPlaces{}}
	for _, name := range slices.Sorted(maps.Keys(t.Values)) {
		if count, err := strconv.Atoi(t.Values[name]); err == nil && (config.PluralCount == nil || name == "count") {
			config.PluralCount = count
		}
	}
	text, _ := said.Localize(config) // with an error it is the English one, the form for other numbers, or none
	return cmp.Or(text, string(t.Code))
}

// fillPlaces is the template language of the catalogues: placeholders and nothing else, so that a
// library's own text runs no code.
type fillPlaces struct{}

// Cacheable implements template.Parser.
func (fillPlaces) Cacheable() bool { return true }

// Parse implements template.Parser.
func (fillPlaces) Parse(src, _, _ string) (template.ParsedTemplate, error) { return filled(src), nil }

// filled is a text with its placeholders.
type filled string

// Execute implements template.ParsedTemplate.
func (f filled) Execute(values any) (string, error) {
	v, _ := values.(Values)
	return Fill(string(f), v), nil
}

// Fill returns a text with values for its placeholders. Other placeholders stay.
func Fill(text string, values Values) string {
	pairs := make([]string, 0, 2*len(values))
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
