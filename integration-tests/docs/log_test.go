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

// messageAt says where a function that logs has the line's message among its arguments.
var messageAt = map[string]int{
	"InfoContext": 1, "WarnContext": 1, "ErrorContext": 1, "Log": 2, "LogAttrs": 2, "Warn": 0, // of slog.Logger
	"noteFallback": 3, // of circulation's settings
}

// computed stands for a part of a message that is no literal.
const computed = "x"

// A row of the table is: message, with … for what differs, level, and what to do. Lines that are
// always info, or debug, may be missing.
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
			if !listed && !m.quiet {
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

// message is a call of the log. A quiet one is always info or debug.
type message struct {
	text, at string
	quiet    bool
}

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
		constants := findConstants(parsed)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok {
				_, isLog := messageAt[f.Name.Name]
				return !isLog // its callers have the message
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if at, ok := messageAt[method.Sel.Name]; ok && len(call.Args) > at {
				found = append(found, message{
					text: joinLiterals(call.Args[at], constants), at: files.Position(call.Pos()).String(),
					quiet: method.Sel.Name == "InfoContext" || at > 0 && isQuietLevel(call.Args[at-1]),
				})
			}
			return true
		})
	}
	return found, source
}

// isQuietLevel reports whether an argument is the constant level of a line that may be missing.
func isQuietLevel(e ast.Expr) bool {
	level, ok := e.(*ast.SelectorExpr)
	return ok && (level.Sel.Name == "LevelInfo" || level.Sel.Name == "LevelDebug")
}

// findConstants returns the constant texts of a file.
func findConstants(file *ast.File) map[string]string {
	constants := map[string]string{}
	for _, d := range file.Decls {
		declared, ok := d.(*ast.GenDecl)
		if !ok || declared.Tok != token.CONST {
			continue
		}
		for _, s := range declared.Specs {
			if spec, ok := s.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				constants[spec.Names[0].Name] = joinLiterals(spec.Values[0], nil)
			}
		}
	}
	return constants
}

// joinLiterals returns the text of an expression of strings.
func joinLiterals(e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return joinLiterals(e.X, constants) + joinLiterals(e.Y, constants)
	case *ast.Ident:
		if text, ok := constants[e.Name]; ok {
			return text
		}
	}
	return computed
}
