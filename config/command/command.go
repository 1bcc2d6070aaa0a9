// Package command is what the commands of the services share: the process, flags, and who
// runs it.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"checkoutlock/config"
)

// Process is what a command gets of its process, so that tests can run it.
type Process struct {
	Args           []string // without the program's name
	Environ        []string
	Stdout, Stderr io.Writer
}

// StatusError is an error that says how the process ends.
type StatusError struct {
	Err    error
	Status int
	Logged bool // it is in the log already, so Main does not print it
}

// Error implements error.
func (e *StatusError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StatusError) Unwrap() error { return e.Err }

// printVersion prints which build a program is: name, version, revision and its time, Go.
func printVersion(w io.Writer, name string) error {
	b := config.ReadBuild()
	parts := slices.DeleteFunc([]string{name, b.String(), b.Time, b.Go}, func(part string) bool { return part == "" })
	_, err := fmt.Fprintln(w, strings.Join(parts, " "))
	return err
}

// Runner is a service that was started.
type Runner interface {
	// Run runs until ctx is done, or returns why it cannot.
	Run(ctx context.Context) error
}

// Serve starts and runs a service. It logs which build starts, and the error that ends it, as one more line
// of JSON. A stop while it waits for its database is no error. Meanwhile SIGUSR1 turns debug lines on and off.
func Serve[S Runner](ctx context.Context, log *slog.Logger, start func(context.Context) (S, error)) error {
	b := config.ReadBuild()
	log.InfoContext(ctx, "starting", "version", b.Version, "revision", b.Revision, "revision_time", b.Time,
		"modified", b.Modified, "go", b.Go)
	defer toggleDebug(ctx, log)()
	s, err := start(ctx)
	if err == nil {
		debug.FreeOSMemory() // a start makes more garbage than hours without load
		err = s.Run(ctx)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, context.Canceled): // before it served
		log.InfoContext(ctx, "stopped", "err", err)
		return nil
	}
	log.ErrorContext(ctx, "the process ends", "err", err)
	return &StatusError{Err: err, Status: 1, Logged: true}
}

// toggleDebug sets the log's level to debug at a SIGUSR1, and back at the next one, until it is stopped.
func toggleDebug(ctx context.Context, log *slog.Logger) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	usual := config.LevelOf(log)
	var running sync.WaitGroup
	running.Go(func() {
		for range signals {
			level := config.Levels[0]
			if config.LevelOf(log) == level {
				level = usual
			}
			_ = config.SetLevel(ctx, log, level) // both are levels
		}
	})
	return func() {
		signal.Ignore(syscall.SIGUSR1) // its default would end the process with another status
		close(signals)
		running.Wait()
	}
}

// Main runs a program until SIGINT or SIGTERM and ends the process with status 1 after an
// error, which it prints as text unless it is logged. A second signal ends the process at
// once. flag.ErrHelp prints the usage.
func Main(name, usage string, run func(context.Context, Process) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal has Go's default behaviour
	err := run(ctx, Process{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr})
	if errors.Is(err, flag.ErrHelp) {
		_, err = fmt.Fprint(os.Stdout, usage)
	}
	if err == nil {
		return
	}
	other, ok := errors.AsType[*StatusError](err)
	if !ok || !other.Logged {
		fmt.Fprintln(os.Stderr, name+":", err)
	}
	if ok {
		os.Exit(other.Status)
	}
	os.Exit(1)
}

// LoadSettings reads cfg, makes the service's log by cfg's part about it, and warns of variables that
// resemble settings.
func (p Process) LoadSettings(ctx context.Context, name string, cfg config.Validator, about *config.Log) (*slog.Logger, error) {
	if err := config.Load(cfg, p.Environ); err != nil {
		return nil, err
	}
	log := about.New(p.Stderr, name)
	for _, m := range config.FindMisspelt(cfg, p.Environ) {
		log.WarnContext(ctx, "this variable is no setting and is not used", "variable", m.Variable, "resembles", m.Meant)
	}
	return log, nil
}

// FormatCell returns a text of a client in one line, without what a terminal obeys.
func FormatCell(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.Join(strings.Fields(text), " "))
}

// PrintJSON writes what read returns as a JSON document with indents.
func PrintJSON[T any](w io.Writer, read func() (T, error)) error {
	v, err := read()
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// UserName returns the name of the user of this host.
func UserName() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "unknown"
	}
	return u.Username
}
