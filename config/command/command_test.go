package command_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"checkoutlock/config"
	"checkoutlock/config/command"
)

// stopping makes the test binary a program that never ends its stop.
const stopping = "TEST_STOPS_FOR_EVER"

// talking makes it a service that logs.
const talking = "TEST_TALKS"

// failing makes it a program that fails; the value "logged" lets it log its error.
const failing = "TEST_FAILS"

func TestMain(m *testing.M) {
	if os.Getenv(failing) != "" {
		command.Main("failing", "how to fail", func(ctx context.Context, p command.Process) error {
			err := errors.New("no PostgreSQL")
			switch os.Getenv(failing) {
			case "logged":
				return command.Serve(ctx, config.Log{Level: "error"}.New(p.Stderr, "failing"),
					func(context.Context) (runner, error) { return nil, err })
			case "misused":
				return lender.Run(ctx, command.Process{Args: []string{"lend", "-from"}})
			case "helped":
				return lender.Run(ctx, command.Process{Args: []string{"help"}})
			}
			return err
		})
		os.Exit(0)
	}
	if os.Getenv(talking) != "" {
		command.Main("talking", "", talk)
		os.Exit(0)
	}
	if os.Getenv(stopping) == "" {
		os.Exit(m.Run())
	}
	command.Main("stopping", "", func(ctx context.Context, p command.Process) error {
		fmt.Fprintln(p.Stdout, "serving")
		<-ctx.Done()
		fmt.Fprintln(p.Stdout, "stopping")
		select {}
	})
}

// runner is a service that was started.
type runner func(context.Context) error

func (r runner) Run(ctx context.Context) error { return r(ctx) }

// talk logs a debug line for each line that it reads.
func talk(ctx context.Context, p command.Process) error {
	log := config.Log{Level: "warn"}.New(p.Stdout, "")
	run := runner(func(ctx context.Context) error {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			log.DebugContext(ctx, lines.Text())
			log.ErrorContext(ctx, "read")
		}
		return nil
	})
	err := command.Serve(ctx, log, func(context.Context) (runner, error) { return run, nil })
	if !signal.Ignored(syscall.SIGUSR1) {
		return errors.New("a late SIGUSR1 ends the process")
	}
	return err
}

func TestServe_SignalTurnsDebugLinesOnAndOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), talking+"=yes")
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	expect := func(want ...string) {
		t.Helper()
		for _, want := range want {
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				t.Fatalf("got %s, want %s", lines.Text(), want)
			}
		}
	}
	say := func(word string) {
		t.Helper()
		if _, err := fmt.Fprintln(in, word); err != nil {
			t.Fatal(err)
		}
	}
	signal := func(level string) {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		expect(`"msg":"log level set","to":"` + level + `"`)
	}
	say("before")
	expect(`"read"`)
	signal("debug")
	say("meanwhile")
	expect(`"meanwhile"`, `"read"`)
	signal("warn")
	say("after")
	expect(`"read"`)
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}

func TestServe_AStopIsNoFailure(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var out bytes.Buffer
	err := command.Serve(ctx, config.Log{Level: "info"}.New(&out, "waiting"), func(ctx context.Context) (runner, error) {
		stop()
		return nil, fmt.Errorf("connecting to the database: %w", ctx.Err())
	})
	if log := out.String(); err != nil || !strings.Contains(log, `"msg":"stopped"`) || strings.Contains(log, "ERROR") {
		t.Errorf("got %v, logged %s", err, log)
	}
	for cause, ctx := range map[error]context.Context{context.Canceled: t.Context(), io.EOF: ctx} {
		failed := func(context.Context) (runner, error) { return nil, cause }
		if err := command.Serve(ctx, slog.New(slog.DiscardHandler), failed); !errors.Is(err, cause) {
			t.Errorf("got %v, want a failure of %v", err, cause)
		}
	}
}

func TestMain_ReportsAnErrorOnce(t *testing.T) {
	t.Parallel()
	for how, tt := range map[string]struct {
		status int
		want   string
	}{
		"printed": {1, `^failing: no PostgreSQL\n$`},
		"misused": {2, `^failing: flag provided but not defined: -from\n$`},
		"helped":  {0, `^how to fail$`},
		"logged": {1, `^\{"time":"[^"]*","level":"ERROR","msg":"the process ends",` +
			`"service":"failing","err":"no PostgreSQL"\}\n$`},
	} {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), failing+"="+how), &out, &out
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() != tt.status || !regexp.MustCompile(tt.want).Match(out.Bytes()) {
			t.Errorf("%s: %v, wrote %q, want status %d and %s", how, err, &out, tt.status, tt.want)
		}
	}
}

func TestMain_FailsIfItsHelpCannotBeWritten(t *testing.T) {
	t.Parallel()
	in, out, err := os.Pipe() // its end for reading takes no writes
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stdout = append(os.Environ(), failing+"=helped"), in
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("got %v, want status 1", err)
	}
}

func TestMain_SecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), stopping+"=yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"serving", "stopping"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the program wrote %q, want %q", lines.Text(), want)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	again := time.NewTicker(100 * time.Millisecond) // the second one may come before the first is handled
	defer again.Stop()
	for {
		select {
		case <-again.C:
			_ = cmd.Process.Signal(syscall.SIGTERM)
		case err := <-ended:
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
				t.Errorf("got %v, want the process ended by SIGTERM", err)
			}
			return
		}
	}
}
