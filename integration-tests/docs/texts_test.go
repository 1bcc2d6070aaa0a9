package docs_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// templates are the folders of the pages.
var templates = []string{
	"web/page/templates", "circulation/internal/staff/templates", "resource-locks/internal/httpapi/templates",
}

var (
	actions   = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	readAloud = regexp.MustCompile(`(?:aria-label|title|placeholder|data-label|alt)="([^"]*)"`)
	tags      = regexp.MustCompile(`(?s)<[^>]*>`)
	attribute = regexp.MustCompile(`[\w-]+="[^"]*"`) // of a tag that another template begins
	words     = regexp.MustCompile(`\pL+`)
)

// findBareText returns the words of a template that are in no catalogue.
func findBareText(template string) []string {
	text := actions.ReplaceAllString(template, "")
	var bare []string
	for _, m := range readAloud.FindAllStringSubmatch(text, -1) {
		bare = append(bare, words.FindAllString(m[1], -1)...)
	}
	text = attribute.ReplaceAllString(tags.ReplaceAllString(text, ""), "")
	return append(bare, words.FindAllString(text, -1)...)
}

func TestTemplates_HaveNoTextOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, folder := range templates {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.html"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has the templates %v, %v", folder, files, err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bare := findBareText(string(raw)); len(bare) > 0 {
				t.Errorf("%s has words that are in no catalogue: %q", file, bare)
			}
		}
	}
}

func TestFindBareText(t *testing.T) {
	t.Parallel()
	for template, want := range map[string][]string{
		`<p class="lead">{{say "a.b"}}</p>`:                         nil,
		`<p>Two words {{.X}}</p>`:                                   {"Two", "words"},
		`<a href="x" aria-label="More" title="{{say "a.b"}}">…</a>`: {"More"},
		`{{define "described"}} aria-describedby="hint"{{end}}`:     nil,
		`{{/* a comment */}}<td data-label="Größe">12</td>`:         {"Größe"},
	} {
		if got := findBareText(template); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", template, got, want)
		}
	}
}

// quoted is a string in an action of a template.
var quoted = regexp.MustCompile(`"([^"]*)"`)

// codePattern is what codes of texts look like.
var codePattern = regexp.MustCompile(`^[a-z]+[A-Za-z]*\.[a-z][A-Za-z]*$`)

// listStrings returns the strings of all templates and of all Go files without tests.
func listStrings(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, module := range []string{"web", "circulation", "resource-locks"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, _ fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case strings.HasSuffix(path, ".html"):
				raw, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				for _, action := range actions.FindAllString(string(raw), -1) {
					for _, text := range quoted.FindAllStringSubmatch(action, -1) {
						found[text[1]] = path
					}
				}
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
				if err != nil {
					return err
				}
				ast.Inspect(file, func(n ast.Node) bool {
					if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
						text, _ := strconv.Unquote(literal.Value)
						found[text] = path
					}
					return true
				})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestCatalogue_HasTheCodesThatAreUsed(t *testing.T) {
	t.Parallel()
	var english map[string]any
	if err := json.Unmarshal([]byte(read(t, "web/texts/en.json")), &english); err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{} // the first part of each code
	used := listStrings(t)
	for _, code := range slices.Sorted(maps.Keys(english)) {
		first, _, _ := strings.Cut(code, ".")
		pages[first] = true
		if _, exists := used[code]; !exists {
			t.Errorf("the text %s is used nowhere", code)
		}
	}
	for text, path := range used {
		first, rest, _ := strings.Cut(text, ".")
		isFile := slices.Contains([]string{"html", "js", "css", "svg", "json", "csv", "go"}, rest)
		if _, exists := english[text]; !exists && codePattern.MatchString(text) && pages[first] && !isFile {
			t.Errorf("%s uses the text %s, which is in no catalogue", path, text)
		}
	}
}
