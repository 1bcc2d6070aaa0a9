// Package docs_test checks the documents, the Makefile and the Dockerfiles against the code.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"checkoutlock/web/describe"
)

const root = "../.."

var (
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	testName   = regexp.MustCompile(`^Test[A-Z]\w*$`)
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	filePath   = regexp.MustCompile(`^[a-z][\w.-]*(/[\w.-]+)*(/|\.go|\.md|\.yml)$`)
	identifier = regexp.MustCompile(`^[A-Za-z]\w*$`)
	mapLine    = regexp.MustCompile(`(?m)^([a-z][\w-]*/\S*) `)
	mdLink     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence      = regexp.MustCompile("(?ms)^```.*?^```")
	listItem   = regexp.MustCompile(`^\s*([*-]|\d+\.) `)
	envTag     = regexp.MustCompile(`env:"([A-Z_]+)[",]`)
	envRow     = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|")
	sentence   = regexp.MustCompile("[.!?][\"”)*_]*\\s+([A-Z`*“\"(…])")
)

func TestArchitecture_NamesWhatExists(t *testing.T) {
	t.Parallel()
	text := read(t, "ARCHITECTURE.md")
	tests := findTests(t)
	prose := fence.ReplaceAllString(text, "")
	for _, m := range codeSpan.FindAllStringSubmatch(prose, -1) {
		switch name := m[1]; {
		case testName.MatchString(name) && !tests[name]:
			t.Errorf("there is no test %s", name)
		case filePath.MatchString(name) && !exists(name):
			t.Errorf("there is no file %s", name)
		}
	}
	for _, m := range mapLine.FindAllStringSubmatch(text, -1) {
		if !exists(m[1]) {
			t.Errorf("there is no folder %s", m[1])
		}
	}
}

// A row of the table is: subject, file, name in that file, and what it does.
func TestArchitecture_WhereIs(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## Where is ...?\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[2], "`") {
			continue
		}
		rows++
		file, name := strings.Trim(cells[2], " `"), strings.Trim(cells[3], " `")
		if !filePath.MatchString(file) || !identifier.MatchString(name) {
			t.Errorf("the row has no file and name: %s", line)
			continue
		}
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(read(t, file)) {
			t.Errorf("%s has no %s", file, name)
		}
	}
	if rows < 20 {
		t.Errorf("got %d rows, want at least 20", rows)
	}
}

// Each claim of docs/security.md names the tests that it rests on.
func TestSecurity_ClaimsHaveTests(t *testing.T) {
	t.Parallel()
	tests, claims := findTests(t), 0
	for line := range strings.Lines(read(t, "docs/security.md")) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.Contains(line, "---") || strings.TrimSpace(cells[1]) == "Claim" {
			continue
		}
		claims++
		names := codeSpan.FindAllStringSubmatch(cells[2], -1)
		if len(names) == 0 {
			t.Errorf("the claim names no test: %s", line)
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("there is no test %s", name[1])
			}
		}
	}
	if claims < 40 {
		t.Errorf("got %d claims, want at least 40", claims)
	}
}

func TestDocuments_LinkWhatExists(t *testing.T) {
	t.Parallel()
	for _, file := range findFiles(t, ".md") {
		for _, m := range mdLink.FindAllStringSubmatch(fence.ReplaceAllString(read(t, file), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if !exists(target) {
				t.Errorf("%s links %s, which does not exist", file, m[1])
			} else if anchor != "" && !hasHeading(read(t, target), anchor) {
				t.Errorf("%s links %s, which has no such heading", file, m[1])
			}
		}
	}
}

func TestDocuments_HaveShortLinesAndSentences(t *testing.T) {
	t.Parallel()
	const maxColumns, maxWords = 100, 25
	for _, file := range findFiles(t, ".md") {
		if file == "docs/benchmarks.md" {
			continue // make bench writes it
		}
		for _, p := range findParagraphs(read(t, file)) {
			for _, line := range p {
				if utf8.RuneCountInString(line) > maxColumns {
					t.Errorf("%s: the line is longer than %d columns: %s", file, maxColumns, line)
				}
			}
			text := mdLink.ReplaceAllString(strings.Join(p, " "), "]")
			for _, s := range strings.Split(sentence.ReplaceAllString(text, ".\n$1"), "\n") {
				words := 0
				for _, w := range strings.Fields(s) {
					if strings.IndexFunc(w, isWordRune) >= 0 {
						words++
					}
				}
				if words > maxWords {
					t.Errorf("%s: the sentence has %d words, allowed are %d: %s", file, words, maxWords, s)
				}
			}
		}
	}
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// findParagraphs returns the lines of each paragraph and list item, without tables,
// headings, pictures and code.
func findParagraphs(text string) [][]string {
	var all [][]string
	var paragraph []string
	for line := range strings.Lines(fence.ReplaceAllString(text, "") + "\n\n") {
		line = strings.TrimRight(line, "\n")
		isProse := line != "" && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#") &&
			!strings.HasPrefix(line, "![")
		if (!isProse || listItem.MatchString(line)) && len(paragraph) > 0 {
			all, paragraph = append(all, paragraph), nil
		}
		if isProse {
			paragraph = append(paragraph, line)
		}
	}
	return all
}

func TestSettings_AreDocumented(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, m := range envRow.FindAllStringSubmatch(read(t, "docs/settings.md"), -1) {
		documented[m[1]] = true
	}
	used := map[string]bool{}
	for _, file := range append(findFiles(t, ".go"), "docker-compose.yml") {
		text := read(t, file)
		for name := range documented {
			used[name] = used[name] || !strings.HasSuffix(file, "_test.go") && strings.Contains(text, name)
		}
		for _, m := range envTag.FindAllStringSubmatch(text, -1) {
			if !documented[m[1]] && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("docs/settings.md lacks %s of %s", m[1], file)
			}
		}
	}
	for name := range documented {
		if !used[name] {
			t.Errorf("docs/settings.md has %s, which nothing uses", name)
		}
	}
}

func TestChangelog_BeginsWithTheVersionOfTheDescriptors(t *testing.T) {
	t.Parallel()
	newest := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	if newest == nil || newest[1] != describe.Version {
		t.Errorf("the newest version of CHANGELOG.md is %q, and that of the descriptors %s", newest, describe.Version)
	}
	image := regexp.MustCompile(`checkoutlock/[a-z-]+:(\d\S+)`)
	for _, file := range append(findFiles(t, ".yaml"), "docs/install.md") {
		for _, m := range image.FindAllStringSubmatch(read(t, file), -1) {
			if m[1] != describe.Version {
				t.Errorf("%s has the image %s, and the descriptors are of %s", file, m[0], describe.Version)
			}
		}
	}
}

// hasHeading reports whether a document has a heading with the anchor that GitHub makes.
func hasHeading(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		made := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(made, " ", "-") == anchor {
			return true
		}
	}
	return false
}

func findTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for _, file := range findFiles(t, "_test.go") {
		for _, m := range testFunc.FindAllStringSubmatch(read(t, file), -1) {
			tests[m[1]] = true
		}
	}
	return tests
}

// findFiles lists the repository's files whose names end so, as paths from its root.
func findFiles(t *testing.T, end string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, end) {
			relative, err := filepath.Rel(root, path)
			files = append(files, relative)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}
