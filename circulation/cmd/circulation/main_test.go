package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"checkoutlock/config/command"
)

var run = program.Run

func TestCommands(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args, environ []string
		want          string // part of the error
	}{
		"a typo": {args: []string{"serv"}, environ: nil, want: `there is no command "serv"`},
		"too much": {
			args: []string{"serve", "now"}, environ: nil, want: `serve takes flags alone, but got ["now"]`,
		},
		"settings that are no": {args: nil, environ: []string{"STORAGE_URL=x", "LOCK_TTL_MS=0"}, want: "LOCK_TTL_MS is 0"},
		"no healthy service":   {args: []string{"--healthcheck"}, environ: []string{"PORT=1"}, want: "refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), command.Process{Args: tt.args, Environ: tt.environ, Stdout: io.Discard, Stderr: io.Discard})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	for _, arg := range []string{"help", "-h", "--help"} {
		if err := run(t.Context(), command.Process{
			Args: []string{arg}, Environ: nil, Stdout: io.Discard, Stderr: io.Discard,
		}); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: got %v, want the usage", arg, err)
		}
	}
}

func TestDescriptor_NeedsNoSettings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	wrong := []string{"LOCK_TTL_MS=0"}
	err := run(t.Context(), command.Process{Args: []string{"descriptor"}, Environ: wrong, Stdout: &out})
	var d struct {
		Provides []struct{ ID string }
	}
	if err = errors.Join(err, json.Unmarshal(out.Bytes(), &d)); err != nil || len(d.Provides) == 0 {
		t.Errorf("got %.200s, %v", &out, err)
	}
}

func TestVersion_NeedsNoSettings(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "-version", "--version"} {
		var out bytes.Buffer
		err := run(t.Context(), command.Process{Args: []string{arg}, Environ: []string{"LOCK_TTL_MS=0"}, Stdout: &out})
		if err != nil || !strings.HasPrefix(out.String(), "circulation devel") {
			t.Errorf("%s: got %q, %v", arg, &out, err)
		}
	}
}

func TestRun_WarnsOfVariablesThatResembleSettings(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = run(ctx, command.Process{Args: nil, Environ: []string{"PORT=0", "LOCK_TTLMS=5"}, Stdout: io.Discard, Stderr: &log})
	line, _, _ := strings.Cut(log.String(), "\n")
	for _, want := range []string{`"level":"WARN"`, `"variable":"LOCK_TTLMS"`, `"resembles":"LOCK_TTL_MS"`} {
		if !strings.Contains(line, want) {
			t.Errorf("the first line is %s, want %s in it", line, want)
		}
	}
}

func TestRun_RequestedStopIsNoError(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"serve"}} {
		ctx, cancel := context.WithCancel(t.Context())
		out, in := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx, command.Process{Args: args, Environ: []string{"PORT=0"}, Stdout: io.Discard, Stderr: in})
		}()
		lines := bufio.NewScanner(out)
		for _, want := range []string{`"msg":"starting","service":"circulation","version":"devel"`, `"msg":"serving"`} {
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				t.Errorf("the log has the line %s, %v, want %s", lines.Text(), lines.Err(), want)
			}
		}
		go func() { _, _ = io.Copy(io.Discard, out) }()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got %v, want an orderly stop", err)
		}
	}
}

func TestServe_LogsTheErrorThatEndsIt(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	environ := []string{"HTTP_ADDR=192.0.2.1", "STAFF_AUTH=gateway"}
	err := run(t.Context(), command.Process{Args: nil, Environ: environ, Stdout: io.Discard, Stderr: &log})
	if logged, ok := errors.AsType[*command.StatusError](err); !ok || !logged.Logged {
		t.Errorf("got %v, want an error that is in the log", err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	var last struct{ Level, Service, Err string }
	if e := json.Unmarshal([]byte(lines[len(lines)-1]), &last); e != nil || last.Level != "ERROR" ||
		last.Service != "circulation" || last.Err == "" {
		t.Errorf("the log ends with %q, want an ERROR with the cause", lines[len(lines)-1])
	}
}
