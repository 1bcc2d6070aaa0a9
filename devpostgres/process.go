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
	// ErrDataDirInUse is a data directory on which another server runs.
	ErrDataDirInUse = errors.New("another PostgreSQL runs on the data directory")
	errLingering    = errors.New("PostgreSQL did not stop in time and was killed")
)

// The signals that PostgreSQL takes for its ways to shut down: both close all connections, and a fast shutdown also
// writes out what is in memory, which an immediate one leaves to the recovery at the next start.
const (
	fastShutdown      = syscall.SIGINT
	immediateShutdown = syscall.SIGQUIT
)

// process is one run of the server.
type process struct {
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process and its children have ended
	serving atomic.Bool   // it was ready and nobody has asked it to end
	output  *serverLog
}

// startProcess runs the server in the foreground, as a child of this process and not through pg_ctl: so its end is
// seen at once and it cannot be left behind.
func startProcess(ctx context.Context, bin binaries, c cluster, port int, settings []string, log *slog.Logger) (*process, error) {
	args := append([]string{
		"-D", c.dir,
		"-p", strconv.Itoa(port),
		"-c", "listen_addresses=" + loopback,
		"-c", "unix_socket_directories=", // a socket path has 107 bytes at most, and its usual folder is root's
	}, settings...)
	p := &process{
		cmd:    exec.CommandContext(context.WithoutCancel(ctx), bin.postgres(), args...), //nolint:gosec // the binary was found by the search
		done:   make(chan struct{}),
		output: &serverLog{log: log},
	}
	p.cmd.Dir = "/" // the server's user may not be able to read ours
	p.cmd.Env = serverEnv()
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = serverAttr(c.account)
	// The server's children hold its output open, so waiting for the output means waiting for them all.
	p.cmd.WaitDelay = stopTimeout

	started := make(chan error, 1)
	go p.run(started, log)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%w%s", err, c.account.hint(err.Error()))
	}
	return p, nil
}

// run starts the process, reports on started and stays until it has ended.
//
// The kernel sends the parent-death signal when the thread that forked ends, not the process. So this goroutine
// keeps its thread to itself for as long as the server lives, and the thread ends with it.
func (p *process) run(started chan<- error, log *slog.Logger) {
	runtime.LockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = p.cmd.Wait()
	if p.serving.Load() {
		log.Error("PostgreSQL ended unexpectedly", "err", err, "output", p.output.tail())
	}
	close(p.done)
}

// waitReady returns when the server accepts connections, has ended, or the context is done.
func (p *process) waitReady(ctx context.Context, dir string, port int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return p.startFailure(dir)
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL is not ready: %w; its last words:\n%s", ctx.Err(), p.output.tail())
		case <-tick.C:
			// The file tells our server from another one on that port; the port tells that it can be reached.
			if f := readPidFile(dir); f.pid == p.cmd.Process.Pid && f.status == "ready" && answersSoon(ctx, port) {
				p.serving.Store(true)
				return nil
			}
		}
	}
}

// startFailure says why a server ended before it was ready.
func (p *process) startFailure(dir string) error {
	output := p.output.tail()
	switch {
	case strings.Contains(output, `lock file "postmaster.pid" already exists`):
		return fmt.Errorf("%w: pid %d runs on %s: stop it, or use another directory", ErrDataDirInUse, readPidFile(dir).pid, dir)
	case strings.Contains(output, "could not bind"):
		return fmt.Errorf("%w:\n%s", errPortTaken, output)
	default:
		return fmt.Errorf("PostgreSQL ended at once (%s):\n%s", p.cmd.ProcessState, output)
	}
}

// stop asks for a shutdown of that kind and kills what does not follow.
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

// kill ends the server without warning. Its children lead sessions of their own, where no signal to a process group
// reaches them; they leave when they see that their parent is gone, and that is waited for.
func (p *process) kill() error {
	p.serving.Store(false)
	if err := p.signal(os.Kill); err != nil {
		return err
	}
	<-p.done
	return nil
}

// signal sends sig; a process that has ended is no error.
func (p *process) signal(sig os.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if err == nil || errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("sending %s to PostgreSQL: %w", sig, err)
}

// pidFile is what the server writes about itself into its directory.
type pidFile struct {
	pid    int
	status string // "starting", "stopping", "ready"
}

// readPidFile reads postmaster.pid: the pid stands in line 1, the state in line 8 (PostgreSQL's src/include/utils/pidfile.h).
// The zero value stands for a missing or unfinished file.
func readPidFile(dir string) pidFile {
	b, err := os.ReadFile(filepath.Join(dir, "postmaster.pid")) //nolint:gosec // the cluster's own directory
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

// serverEnv returns the environment of the server and initdb: what programs need to run, without the caller's
// secrets and PG* variables, and with English messages.
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

// serverLog passes the server's output on, line by line, and remembers the last lines for error messages.
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

// tail returns the last lines of the output.
func (l *serverLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(append(slices.Clone(l.last), l.partial), "\n")
}
