package texts_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"

	"checkoutlock/web/texts"
)

// forms are the plural forms that a language needs (CLDR).
var forms = map[string][]string{"en": {"one", "other"}, "de": {"one", "other"}, "es": {"many", "one", "other"}}

// readFile returns the texts of a language by code; each has its forms by name.
func readFile(t *testing.T, lang string) map[string]map[string]string {
	t.Helper()
	raw, err := os.ReadFile(lang + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var stored map[string]any
	if err := json.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	read := map[string]map[string]string{}
	for code, text := range stored {
		switch text := text.(type) {
		case string:
			read[code] = map[string]string{"other": text}
		case map[string]any:
			read[code] = map[string]string{}
			for form, of := range text {
				read[code][form], _ = of.(string)
			}
		}
	}
	return read
}

var placeholders = regexp.MustCompile(`\{[^}]*\}`)

func TestCatalogues_AreComplete(t *testing.T) {
	t.Parallel()
	english := readFile(t, "en")
	var machine []string
	for code := range english {
		if strings.HasPrefix(code, "machine.") {
			machine = append(machine, code)
		}
	}
	slices.Sort(machine)
	if declared := readCodes(t); !slices.Equal(declared, machine) {
		t.Errorf("codes.go has the codes %q\nen.json has %q", declared, machine)
	}
	for lang, wanted := range forms {
		own := readFile(t, lang)
		for code := range own {
			if _, exists := english[code]; !exists {
				t.Errorf("%s: %s is in no English catalogue", lang, code)
			}
		}
		for code, model := range english {
			got := slices.Sorted(maps.Keys(own[code]))
			if len(model) > 1 && !slices.Equal(got, wanted) || len(model) == 1 && !slices.Equal(got, []string{"other"}) {
				t.Errorf("%s: %s has the forms %q", lang, code, got)
			}
			for form, text := range own[code] {
				have, want := placeholders.FindAllString(text, -1), placeholders.FindAllString(model["other"], -1)
				slices.Sort(have)
				slices.Sort(want)
				if !slices.Equal(have, want) {
					t.Errorf("%s: %s (%s) has the placeholders %q, want %q", lang, code, form, have, want)
				}
				if text == "" || strings.TrimSpace(text) != text {
					t.Errorf("%s: %s (%s) is empty, or has spaces around it: %q", lang, code, form, text)
				}
				if !strings.HasPrefix(code, "machine.") {
					continue
				}
				if len([]rune(text)) > 120 {
					t.Errorf("%s: %s (%s) does not suit a screen: %q", lang, code, form, text)
				}
				for name, set := range map[string]*charmap.Charmap{"cp850": charmap.CodePage850, "iso-8859-1": charmap.ISO8859_1} {
					if _, err := set.NewEncoder().String(text); err != nil {
						t.Errorf("%s: %s has characters that %s lacks: %q", lang, code, name, text)
					}
				}
			}
		}
	}
}

// readCodes returns the codes that codes.go declares, sorted.
func readCodes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			code, _ := strconv.Unquote(literal.Value)
			declared = append(declared, code)
		}
		return true
	})
	slices.Sort(declared)
	return declared
}

func TestCatalogue_Say(t *testing.T) {
	t.Parallel()
	limit := func(n string) texts.Text {
		return texts.Text{Code: texts.MachineLimit, Values: texts.Values{"limit": n}}
	}
	for name, tt := range map[string]struct {
		text      texts.Text
		languages []string
		want      string
	}{
		"English": {text: limit("3"), want: "You have reached the limit of 3 items of this kind."},
		"one":     {text: limit("1"), want: "You have reached the limit of 1 item of this kind."},
		"German": {
			text: limit("1"), languages: []string{"de"}, want: "Sie haben die Grenze von 1 Medium dieser Art erreicht.",
		},
		"the first that there is": {
			text: limit("2"), languages: []string{"tlh", "es"}, want: "Ha alcanzado el límite de 2 ejemplares de este tipo.",
		},
		"a value that looks like a placeholder": {
			text: texts.Text{Code: texts.MachinePerItem, Values: texts.Values{"item": "{reason}", "reason": "{item}"}},
			want: "{reason}: {item}",
		},
		"a number in a text without forms": {
			text: texts.Text{Code: texts.MachineCardUnknown, Values: texts.Values{"card": "1"}},
			want: "Card 1 is not known here. Please ask at the desk.",
		},
		"the number that count is": {
			text: texts.Text{Code: texts.MachineLimit, Values: texts.Values{"a": "2", "count": "1", "limit": "9"}},
			want: "You have reached the limit of 9 item of this kind.",
		},
		"a number after another value": {
			text: texts.Text{Code: texts.MachineLimit, Values: texts.Values{"a": "x", "limit": "1"}},
			want: "You have reached the limit of 1 item of this kind.",
		},
		"an unknown code": {text: texts.Text{Code: "machine.nothing"}, want: "machine.nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := texts.Delivered().Say(tt.text, tt.languages...); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	c, err := texts.Replace(json.RawMessage(`{"en": {"machine.busy": "Hang on."},
		"fr": {"machine.limit": {"one": "{limit} seul document", "other": "Limite : {limit} documents"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	limit := texts.Text{Code: texts.MachineLimit, Values: texts.Values{"limit": "3"}}
	for want, got := range map[string]string{
		"Hang on.":               c.Say(texts.Text{Code: texts.MachineBusy}),
		"Limite : 3 documents":   c.Say(limit, "fr"),
		"Please tell the desk.":  c.Say(texts.Text{Code: texts.MachineTellDesk}, "fr"),
		"Bitte versuchen Sie es": c.Say(texts.Text{Code: texts.MachineTryAgain}, "de")[:22],
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCatalogue_SaysThePseudoLanguage(t *testing.T) {
	t.Parallel()
	c := texts.Delivered()
	limit := texts.Text{Code: texts.MachineLimit, Values: texts.Values{"limit": "one"}}
	for want, text := range map[string]texts.Text{
		"⟦Yóóúú háávéé rééááchééd théé líímíít óóf one íítééms óóf thíís kíínd.⟧": limit,
		"⟦Yóóúú háávéé rééááchééd théé líímíít óóf 1 íítéém óóf thíís kíínd.⟧": {
			Code: texts.MachineLimit, Values: texts.Values{"limit": "1"},
		},
		"⟦Cáárd 1 íís nóót knóówn hééréé. Plééááséé áásk áát théé déésk.⟧": {
			Code: texts.MachineCardUnknown, Values: texts.Values{"card": "1"},
		},
	} {
		if got := c.Say(text, texts.Pseudo); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := c.Say(limit, "en-GB"); strings.Contains(got, "⟦") {
		t.Errorf("English is %q", got)
	}
}

func TestMatchLanguage(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{
		"": "en", "de": "de", "de-AT,en;q=0.5": "de", "es-MX": "es", "fr-FR,es;q=0.8,en;q=0.5": "es",
		"tlh": "en", "en-GB,de;q=0.9": "en", ";;": "en",
	} {
		if got := texts.MatchLanguage(accept); got != want {
			t.Errorf("%q is %s, want %s", accept, got, want)
		}
	}
}

func TestReplace_NamesEverythingWrong(t *testing.T) {
	t.Parallel()
	for own, wants := range map[string][]string{
		`[]`:                           {"an object of languages"},
		`{"!": {}}`:                    {`"!" is no language`},
		`{"en": {"machine.busy": 3}}`:  {"texts in en"},
		`{"de": {"machine.busy": ""}}`: {"machine.busy is empty"},
		`{"en": {"a": "b", "x": "y"}, "de": {"c": "d"}}`: {`en: "a" is no code`, `en: "x" is no code`, `de: "c" is no code`},
		`{"en": {"machine.limit": "{number}"}}`:          {`{number}`, `["limit"]`},
		`{"en": {"frame.signOut": "Leave"}}`:             {`"frame.signOut" is no code`},
	} {
		_, err := texts.Replace(json.RawMessage(own))
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want it to say %s", own, err, want)
			}
		}
	}
}
