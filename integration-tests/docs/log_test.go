package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logMethods are the methods of slog.Logger whose lines people read at the default level, and whether
// docs/operations.md has to list them. The level of LogAttrs is computed.
var logMethods = map[string]bool{"WarnContext": true, "ErrorContext": true, "InfoContext": false, "LogAttrs": false}

// computed stands for a part of a message that is no literal.
const computed = "x"

// A row of the table is: message, with … for what differs, level, and what to do.
func TestOperations_ListsTheLog(t *testing.T) {
	t.Parallel()
	rows := map[string]*regexp.Regexp{}
	_, text, _ := strings.Cut(read(t, "docs/operations.md"), "\n| Line | Level | What to do |\n")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		for _, m := range codeSpan.FindAllStringSubmatch(strings.Split(line, " | ")[0], -1) {
			rows[m[1]] = regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(m[1]), "…", ".*") + "$")
		}
	}
	used, sources := map[string]bool{}, ""
	for _, module := range []string{"circulation", "circulation-storage", "resource-locks", "database", "web", "config"} {
		messages, source := findMessages(t, module)
		sources += source
		for _, m := range messages {
			listed := false
			for row, pattern := range rows {
				if pattern.MatchString(m.text) {
					listed, used[row] = true, true
				}
			}
			if !listed && logMethods[m.method] {
				t.Errorf("docs/operations.md does not list the line %q of %s", m.text, m.at)
			}
		}
	}
	if len(rows) < 40 {
		t.Errorf("got %d lines, want at least 40", len(rows))
	}
	for row := range rows {
		parts := strings.Split(row, "…")
		longest := slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
		if !used[row] && !strings.Contains(sources, longest) {
			t.Errorf("docs/operations.md lists the line %q, which nothing logs", row)
		}
	}
}

// message is a call of the log.
type message struct{ text, method, at string }

// findMessages returns the calls of the log in a module, and its code.
func findMessages(t *testing.T, module string) (found []message, source string) {
	t.Helper()
	files := token.NewFileSet()
	for _, file := range findFiles(t, ".go") {
		if !strings.HasPrefix(file, module+"/") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		source += read(t, file)
		parsed, err := parser.ParseFile(files, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			at := 1 // after the context
			if method.Sel.Name == "LogAttrs" {
				at = 2
			}
			if _, isLog := logMethods[method.Sel.Name]; isLog && len(call.Args) > at {
				found = append(found, message{joinLiterals(call.Args[at]), method.Sel.Name, files.Position(call.Pos()).String()})
			}
			return true
		})
	}
	return found, source
}

// joinLiterals returns the text of an expression of strings.
func joinLiterals(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return joinLiterals(e.X) + joinLiterals(e.Y)
	}
	return computed
}
