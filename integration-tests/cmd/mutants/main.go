// Command mutants breaks one line of the services after another, each of which holds a promise,
// and runs the test that must fail for it:
//
//	make mutants
//	make mutants ONLY=rowlocks
//
// The tree stays as it is: the compiler gets each broken file in place of the right one.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many mutations are tried at once. Each test waits more than it computes.
const atOnce = 2

// testTimeout ends a test that a mutation lets wait for ever. It counts as a failure.
const testTimeout = "45s"

// mutation is one change of the services' code, and what must notice it.
type mutation struct {
	promise string // which no longer holds
	file    string
	old     string // occurs once in the file
	new     string
	tests   string // the folder of the package whose test must fail
	test    string
}

// verdict is how a mutation ended.
type verdict string

const (
	caught verdict = "caught"
	missed verdict = "MISSED"
	broken verdict = "BROKEN" // it does not compile, or there is no such test
)

func main() {
	only := flag.String("only", "", "a regular `expression` for file and test of the mutations to try")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err == nil {
		err = run(context.Background(), chosen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run tries the chosen mutations and prints a row of a table for each.
func run(ctx context.Context, chosen *regexp.Regexp) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(os.Stdout, "| | Promise | File | Test | | s |\n| --- | --- | --- | --- | --- | --- |")
	var g errgroup.Group
	g.SetLimit(atOnce)
	rows := make(chan string, len(mutations))
	for i, m := range mutations {
		if !chosen.MatchString(m.file + " " + m.test) {
			continue
		}
		g.Go(func() error {
			start := time.Now()
			v, output, err := try(ctx, filepath.Join(dir, fmt.Sprint(i)), m)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stdout, "| %d | %s | `%s` | `%s` | %s | %.0f |\n",
				i+1, m.promise, filepath.Base(m.file), m.test, v, time.Since(start).Seconds())
			if v != caught {
				rows <- fmt.Sprintf("%d %s in %s: %s of %s\n%s", i+1, v, m.file, m.test, m.tests, output)
			}
			return nil
		})
	}
	err = g.Wait()
	close(rows)
	for row := range rows {
		err = errors.Join(err, errors.New(row))
	}
	return err
}

// try runs the test with the mutation, whose files are kept in dir.
func try(ctx context.Context, dir string, m mutation) (verdict, string, error) {
	file, err := filepath.Abs(m.file)
	if err != nil {
		return "", "", err
	}
	text, err := m.apply(file)
	if err != nil {
		return "", "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", "", err
	}
	mutant := filepath.Join(dir, filepath.Base(file))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: mutant}})
	if err != nil {
		return "", "", err
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := errors.Join(os.WriteFile(mutant, text, 0o600), os.WriteFile(overlayFile, overlay, 0o600)); err != nil {
		return "", "", err
	}
	//nolint:gosec // the table names the test
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlayFile, "-vet", "off", "-count", "1", "-failfast",
		"-timeout", testTimeout, "-run", "^"+m.test+"$", "./"+m.tests)
	output, err := cmd.CombinedOutput()
	return judge(m, output, err), string(output[max(0, len(output)-2000):]), nil
}

func judge(m mutation, output []byte, err error) verdict {
	failed := bytes.Contains(output, []byte("--- FAIL: "+m.test)) || bytes.Contains(output, []byte("panic: "))
	switch {
	case err == nil && !bytes.Contains(output, []byte("[no tests to run]")):
		return missed
	case err != nil && failed:
		return caught
	}
	return broken
}

// apply returns the text of the file with the mutation.
func (m mutation) apply(file string) ([]byte, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the table names the file
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return nil, fmt.Errorf("%s has the text %q %d times, wanted once", m.file, m.old, n)
	}
	return []byte(strings.Replace(string(text), m.old, m.new, 1)), nil
}
