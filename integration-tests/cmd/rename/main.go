// Command rename changes the path before the folder's name in the paths of all modules of
// go.work. It is for make rename, which is run once the repository has an address:
//
//	go run ./integration-tests/cmd/rename example.org/locks
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: make rename MODULE=example.org/locks")
		os.Exit(2)
	}
	if err := rename(".", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stdout, "All modules begin with %s. CONTRIBUTING.md and docs/resource-locks.md still say that the repository has no address.\n", os.Args[1])
}

// rename gives each module of a folder the path followed by its own folder. It changes Go
// code, go.mod files, documents and the linter's settings, but no names of container images.
func rename(folder, modulePath string) error {
	if err := module.CheckPath(modulePath); err != nil {
		return fmt.Errorf("MODULE cannot be the path of a module, such as example.org/locks: %w", err)
	}
	tree, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer tree.Close()
	old, folders, err := readModules(tree)
	if err != nil {
		return err
	}
	modules := regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(old) + `(/(?:` + strings.Join(folders, "|") + `)(?:[^:\w-]|$))`)
	linter := regexp.MustCompile(`(prefix\(|module-path: )` + regexp.QuoteMeta(old) + `([)}])`)
	replacement := []byte("${1}" + modulePath + "${2}")
	files, err := findFiles(tree)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := tree.ReadFile(file)
		if err == nil && bytes.Contains(text, []byte(old)) {
			renamed := make([]byte, 0, len(text))
			for line := range bytes.Lines(text) {
				if bytes.Contains(line, []byte(old)) { // expressions are slow on all lines
					line = linter.ReplaceAll(modules.ReplaceAll(line, replacement), replacement)
				}
				renamed = append(renamed, line...)
			}
			err = write(tree, file, renamed)
		}
		if err != nil {
			return fmt.Errorf("renaming the modules in %s: %w", file, err)
		}
	}
	return nil
}

// readModules returns the path that the modules of go.work have in common, and their folders
// as regular expressions.
func readModules(tree *os.Root) (common string, folders []string, err error) {
	text, err := tree.ReadFile("go.work")
	if err != nil {
		return "", nil, fmt.Errorf("reading the modules: %w", err)
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return "", nil, err
	}
	for _, use := range work.Use {
		folder := strings.TrimPrefix(use.Path, "./")
		text, err := tree.ReadFile(folder + "/go.mod")
		if err != nil {
			return "", nil, fmt.Errorf("reading the path of a module: %w", err)
		}
		prefix, fits := strings.CutSuffix(modfile.ModulePath(text), "/"+folder)
		if !fits || common != "" && prefix != common {
			return "", nil, fmt.Errorf("%s/go.mod: the path %s does not fit the folder and the other modules", folder, modfile.ModulePath(text))
		}
		common, folders = prefix, append(folders, regexp.QuoteMeta(folder))
	}
	if common == "" {
		return "", nil, errors.New("go.work lists no modules")
	}
	return common, folders, nil
}

// findFiles lists the files that may have the path of a module.
func findFiles(tree *os.Root) ([]string, error) {
	files := []string{".golangci.yml"}
	err := fs.WalkDir(tree.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isIgnored(d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular() && slices.Contains([]string{".go", ".mod", ".md"}, path.Ext(name)):
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// isIgnored reports whether a folder is none of the repository's.
func isIgnored(folder string) bool {
	return len(folder) > 1 && folder[0] == '.' || folder == "bin" || folder == "node_modules"
}

// write formats the text of a file again, because formatters sort by path, and stores it.
func write(tree *os.Root, file string, text []byte) (err error) {
	switch path.Ext(file) {
	case ".go":
		text, err = formatImports(file, text)
	case ".mod":
		text, err = formatGoMod(file, text)
	}
	if err != nil {
		return err
	}
	return tree.WriteFile(file, text, 0o644)
}

// formatImports formats a file to the end of its imports. No path changes the format of the rest,
// which would take most of the time.
func formatImports(file string, text []byte) ([]byte, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	end := 0
	for _, d := range parsed.Decls {
		if d, ok := d.(*ast.GenDecl); ok {
			end = files.Position(d.End()).Offset
		}
	}
	end += bytes.IndexByte(text[end:], '\n') + 1
	head, err := format.Source(text[:end])
	return slices.Concat(head, text[end:]), err
}

func formatGoMod(file string, text []byte) ([]byte, error) {
	parsed, err := modfile.Parse(file, text, nil)
	if err != nil {
		return nil, err
	}
	parsed.SortBlocks()
	return parsed.Format()
}
