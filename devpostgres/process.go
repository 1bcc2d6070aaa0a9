package devpostgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	errPortTaken = errors.New("the port is taken by another program")
	// ErrDataDirInUse is the error of Start if another server runs on the data directory.
	ErrDataDirInUse = errors.New("another PostgreSQL runs on the data directory")
	errLingering    = errors.New("PostgreSQL did not stop in time and was killed")
)

// The signals for PostgreSQL's kinds of shutdown. Both close all connections. A fast shutdown also
// writes the memory to disk; after an immediate one the next start recovers.
const (
	fastShutdown      = syscall.SIGINT
	immediateShutdown = syscall.SIGQUIT
)

// process is one run of the server.
type process struct {
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process and its children have ended
	serving atomic.Bool   // it was ready, and no end was requested
	output  *serverLog
}

// startProcess runs the server as a child of this process, not through pg_ctl. So this process
// notices its end at once.
func startProcess(ctx context.Context, bin binaries, c cluster, port int, settings []string, log *slog.Logger) (*process, error) {
	args := append([]string{
		"-D", c.dir,
		"-p", strconv.Itoa(port),
		"-c", "listen_addresses=" + loopback,
		"-c", "unix_socket_directories=", // socket paths have at most 107 bytes, and the default folder belongs to root
	}, settings...)
	p := &process{
		cmd:    exec.CommandContext(context.WithoutCancel(ctx), bin.postgres(), args...), //nolint:gosec // the binary was found by the search
		done:   make(chan struct{}),
		output: &serverLog{log: log},
	}
	p.cmd.Dir = "/" // the server's user may not be able to read the current folder
	p.cmd.Env = serverEnv()
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = processAttributes(c.account)
	// The server's children share its output, so Wait waits for all of them.
	p.cmd.WaitDelay = stopTimeout

	started := make(chan error, 1)
	go p.supervise(started, log)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%w%s", err, c.account.explainFailure(err.Error()))
	}
	return p, nil
}

// supervise starts the process, sends the result to started and returns after the end of the
// process.
//
// The kernel sends the parent-death signal when the forking thread ends, not the process. So this
// goroutine keeps its thread locked while the server lives.
func (p *process) supervise(started chan<- error, log *slog.Logger) {
	runtime.LockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = p.cmd.Wait()
	if p.serving.Load() {
		log.Error("PostgreSQL ended unexpectedly", "err", err, "output", p.output.lastLines())
	}
	close(p.done)
}

// waitReady waits until the server accepts connections. It returns an error if the server or the
// context ends.
func (p *process) waitReady(ctx context.Context, dir string, port int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return p.explainStart(dir)
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL is not ready: %w; its last output:\n%s", ctx.Err(), p.output.lastLines())
		case <-tick.C:
			// The file identifies this server, because another one may use the port. The probe
			// proves that clients reach it.
			if f := readPidFile(dir); f.pid == p.cmd.Process.Pid && (f.status == "ready" || f.status == "standby") && probeServer(ctx, port) {
				p.serving.Store(true)
				return nil
			}
		}
	}
}

// explainStart returns why a server ended before it was ready.
func (p *process) explainStart(dir string) error {
	output := p.output.lastLines()
	switch {
	case strings.Contains(output, `lock file "postmaster.pid" already exists`):
		return fmt.Errorf("%w: pid %d runs on %s: stop it, or use another directory", ErrDataDirInUse, readPidFile(dir).pid, dir)
	case strings.Contains(output, "could not bind"):
		return fmt.Errorf("%w:\n%s", errPortTaken, output)
	default:
		return fmt.Errorf("PostgreSQL ended at once (%s):\n%s", p.cmd.ProcessState, output)
	}
}

// stop requests a shutdown by the signal. After stopTimeout it kills the server.
func (p *process) stop(how os.Signal) error {
	p.serving.Store(false)
	if err := p.signal(how); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(errLingering, p.kill())
	}
}

// kill ends the server with SIGKILL. Its children have sessions of their own, so no signal to a
// process group reaches them. They end when they notice the end of their parent, and kill waits for
// that.
func (p *process) kill() error {
	p.serving.Store(false)
	if err := p.signal(os.Kill); err != nil {
		return err
	}
	<-p.done
	return nil
}

// signal sends sig. It returns no error if the process has ended.
func (p *process) signal(sig os.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if err == nil || errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("sending %s to PostgreSQL: %w", sig, err)
}

// pidFile is the part of postmaster.pid that the launcher reads.
type pidFile struct {
	pid    int
	status string // "starting", "stopping", "ready"
}

// readPidFile reads postmaster.pid: line 1 has the pid, line 8 the state (PostgreSQL's
// src/include/utils/pidfile.h). It returns the zero value for a missing or unfinished file.
func readPidFile(dir string) pidFile {
	b, err := os.ReadFile(filepath.Join(dir, "postmaster.pid")) //nolint:gosec // the cluster's directory
	if err != nil {
		return pidFile{}
	}
	lines := strings.Split(string(b), "\n")
	var f pidFile
	f.pid, _ = strconv.Atoi(strings.TrimSpace(lines[0])) // unfinished: no pid yet
	if len(lines) >= 8 {
		f.status = strings.TrimSpace(lines[7])
	}
	return f
}

// serverEnv returns the environment of the server and initdb: only the variables that programs
// need, without secrets and PG* variables, and with English messages.
func serverEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH":
			return false
		}
		return true
	})
	return append(env, "LC_ALL=C", "TZ=UTC")
}

// serverLog logs the server's output line by line, and keeps the last lines for error messages.
type serverLog struct {
	log *slog.Logger

	mu      sync.Mutex
	partial string
	last    []string
}

const keptLines = 20

// Write implements io.Writer.
func (l *serverLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(l.partial+string(b), "\n")
	l.partial = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		l.log.Debug("PostgreSQL says", "line", line)
		l.last = append(l.last, line)
	}
	if n := len(l.last) - keptLines; n > 0 {
		l.last = slices.Delete(l.last, 0, n)
	}
	return len(b), nil
}

// lastLines returns the last lines of the output.
func (l *serverLog) lastLines() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(append(slices.Clone(l.last), l.partial), "\n")
}
