// Package debian installs Debian's packages for tests that need a program which
// is not on the machine.
package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// ErrUnable is why Install did not try.
var ErrUnable = errors.New("not installed with apt-get")

// System is the machine as an installation sees it. Tests give it another one.
type System struct {
	GOOS     string
	Root     bool
	Marker   string                       // the file that marks Debian and its descendants
	LookPath func(string) (string, error) // finds a program in PATH
	// Run runs a program in a folder; env is added to this process's environment.
	Run func(ctx context.Context, dir string, env []string, name string, args ...string) (string, error)
	Say func(string) // writes a line for the person who runs the tests
}

// Install installs packages with apt-get, as root only, and says so, because it
// changes the machine. what names the program that is missing. The error is
// ErrUnable where it did not try. After any other error the program may still be
// there, so the caller looks for it: stale package lists may be good enough.
func (s System) Install(ctx context.Context, what string, packages ...string) error {
	if _, err := os.Stat(s.Marker); err != nil || s.GOOS != "linux" {
		return fmt.Errorf("%w: this is neither Debian nor Ubuntu", ErrUnable)
	}
	if !s.Root {
		return fmt.Errorf("%w: that takes root", ErrUnable)
	}
	aptGet, err := s.LookPath("apt-get")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnable, err)
	}
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	s.Say("no " + what + " for the tests: installing it on this machine with apt-get " + strings.Join(install, " "))
	return errors.Join(s.aptGet(ctx, aptGet, "update"), s.aptGet(ctx, aptGet, install...))
}

// aptGet runs apt-get, and runs it again while another one is at work.
func (s System) aptGet(ctx context.Context, program string, args ...string) error {
	env := []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"} // its messages are looked at
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		_, err := s.Run(ctx, "/", env, program, args...)
		if err == nil || !strings.Contains(err.Error(), "Could not get lock") {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// This returns the machine that the tests run on.
func This() System {
	return System{
		GOOS: runtime.GOOS, Root: os.Geteuid() == 0, Marker: "/etc/debian_version", LookPath: exec.LookPath,
		Run: Run, Say: func(s string) { fmt.Fprintln(os.Stderr, s) },
	}
}

// Run runs a program to its end and returns its standard output; what it wrote to
// standard error is in the error. env is added to this process's environment.
func Run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // names and arguments are ours
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err == nil {
		return string(out), nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
}
