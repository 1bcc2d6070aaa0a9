// Package debian installs Debian's packages of programs that tests need.
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

// ErrUnable is the error of Install if it cannot try.
var ErrUnable = errors.New("not installed with apt-get")

// System is the machine of an installation. Tests replace it.
type System struct {
	GOOS     string
	Root     bool
	Marker   string                       // the file that marks Debian and its descendants
	LookPath func(string) (string, error) // finds a program in PATH
	// Run runs a program in a folder; env is added to this process's environment.
	Run func(ctx context.Context, dir string, env []string, name string, args ...string) (string, error)
	Say func(string) // writes a line to the user of the tests
}

// Install installs packages with apt-get, as root only. It announces that, because it
// changes the machine. program is the name of the missing program. The error is ErrUnable if
// it cannot try. After other errors the caller searches the program again: an installation
// may succeed with stale package lists.
func (s System) Install(ctx context.Context, program string, packages ...string) error {
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
	s.Say("no " + program + " for the tests: installing it on this host with apt-get " + strings.Join(install, " "))
	return errors.Join(s.aptGet(ctx, aptGet, "update"), s.aptGet(ctx, aptGet, install...))
}

// aptGet runs apt-get, and repeats it while another process holds its lock.
func (s System) aptGet(ctx context.Context, program string, args ...string) error {
	env := []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"} // for the test of its message below
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

// This returns the machine of this process.
func This() System {
	return System{
		GOOS: runtime.GOOS, Root: os.Geteuid() == 0, Marker: "/etc/debian_version", LookPath: exec.LookPath,
		Run: Run, Say: func(s string) { fmt.Fprintln(os.Stderr, s) },
	}
}

// Run runs a program to its end and returns its standard output. The error contains its
// standard error. env is added to this process's environment.
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
