package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report collects tables, prints each as it grows, and writes all of them as Markdown.
type report struct {
	out     io.Writer
	md      bytes.Buffer
	started time.Time
}

func newReport(out io.Writer) *report { return &report{out: out, started: time.Now()} }

// describeMachine writes the heading: what was measured, and on what.
func (r *report) describeMachine(ctx context.Context, b *bench) error {
	var version string
	if err := b.db.pool.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
		return err
	}
	r.md.WriteString("# Benchmarks\n\nWritten by `make bench`. Do not edit. [performance.md](performance.md) says what was learned.\n\n")
	facts := []string{
		"commit " + b.builds[0].revision,
		time.Now().UTC().Format(time.DateOnly),
		fmt.Sprintf("%d CPUs (%s), shared by client, services and PostgreSQL", runtime.NumCPU(), processorName()),
		runtime.Version(), "PostgreSQL " + version,
		fmt.Sprintf("medians of %d repetitions of %s, which alternate between what is compared; for check-outs also of their ratios", b.repetitions, b.slice),
	}
	if len(b.builds) > 1 {
		facts = append(facts, "compared with commit "+b.builds[1].revision)
	}
	for _, fact := range facts {
		fmt.Fprintf(&r.md, "* %s\n", fact)
		fmt.Fprintln(r.out, fact)
	}
	return nil
}

func processorName() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, name, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(name)
		}
	}
	return runtime.GOARCH
}

func (r *report) begin(section string) {
	fmt.Fprintf(&r.md, "\n## %s\n", strings.ToUpper(section[:1])+section[1:])
	fmt.Fprintf(r.out, "\n%s (after %s)\n", section, time.Since(r.started).Round(time.Second))
}

// note adds a sentence.
func (r *report) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(&r.md, "\n%s\n", text)
	fmt.Fprintln(r.out, text)
}

// table adds a table; the first row names the columns.
func (r *report) table(rows [][]string) {
	r.md.WriteByte('\n')
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	for i, row := range rows {
		fmt.Fprintf(&r.md, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			r.md.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // the writer is the terminal
}

func (r *report) write(path string) error {
	fmt.Fprintf(&r.md, "\nThe run took %s.\n", time.Since(r.started).Round(time.Second))
	return os.WriteFile(path, r.md.Bytes(), 0o644) //nolint:gosec // a document for everyone
}

// formatRatio writes a/b.
func formatRatio(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return strconv.FormatFloat(a/b, 'f', 2, 64)
}

func formatMillis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64) + " ms"
}

// gitOutput returns what git prints, without the line break.
func gitOutput(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // arguments of this program
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
