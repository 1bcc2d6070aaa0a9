// Package devpostgres runs a private PostgreSQL for development and tests.
//
// [Start] finds the binaries on the machine or fetches them. It makes a cluster in a directory,
// starts the server on the loopback interface and returns when it accepts connections. The cluster
// is durable, requires a password, and uses UTC and the C locale. It is not made for production.
//
// Linux and macOS are supported. On Linux the server ends with the process that started it, also
// after SIGKILL. On macOS, SIGKILL of the launcher leaves the server running, and the next Start on
// that directory names its pid.
package devpostgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	superuser = "postgres"

	// readyTimeout bounds the wait for a started server, including crash recovery.
	readyTimeout = 2 * time.Minute
	// stopTimeout bounds a shutdown. A fast shutdown takes some ten milliseconds on a laptop. On a
	// slow disk it takes as long as the server writes its memory to disk.
	stopTimeout = 2 * time.Minute
	// portTries is how many free ports are tried. Another program may bind a port after the search.
	portTries = 5
)

// Options configures a server. The zero value is a throw-away server on a free port.
type Options struct {
	// DataDir is the directory of the cluster. If it is missing, Start makes it and its parents.
	// Empty means a throw-away directory, which [Server.Stop] removes. On Linux it is in memory, if
	// /dev/shm has 4 GB of space. Its cluster is a copy of one that stays in the folder of downloads,
	// so all throw-away servers of a user have the same password.
	DataDir string
	// OnDisk keeps a throw-away directory on disk always, as measurements need.
	OnDisk bool
	// BinDir is the folder with postgres and initdb (PG_BIN). If it is empty, Start searches. An
	// unusable folder is an error.
	BinDir string
	// Port is the TCP port on 127.0.0.1. 0 means a free one.
	Port int
	// Log gets the server's output at level debug, downloads and installations. Nil discards them.
	Log *slog.Logger
	// Settings are further server settings by name, such as max_connections (default 300). Start
	// refuses settings that the launcher depends on (addresses, port, directories) and those that
	// risk data (fsync).
	Settings map[string]string
}

// Server is a running PostgreSQL. Its methods may be called concurrently.
type Server struct {
	log      *slog.Logger
	bin      binaries
	cluster  cluster
	settings []string
	scratch  *scratch // nil if the data is kept
	port     int

	ops     sync.Mutex // one Stop, Kill or Restart at a time
	stopped bool       // guarded by ops
	proc    atomic.Pointer[process]
}

// Start makes the cluster if there is none, starts the server and returns when it accepts
// connections. The context bounds the start only; the server runs until [Server.Stop]. The server
// process has two minutes to become ready.
//
// Start changes nothing and fails if another server runs on the directory, or if the directory has
// other content. It also fails if it finds no binaries of the cluster's major version.
func Start(ctx context.Context, o Options) (*Server, error) {
	return startWithFinder(ctx, o, newFinder(cmp.Or(o.Log, slog.New(slog.DiscardHandler))))
}

func startWithFinder(ctx context.Context, o Options, f *finder) (_ *Server, err error) {
	if !supported {
		return nil, errors.New("starting PostgreSQL is not supported on this system: run one and name it in DATABASE_URL")
	}
	settings, err := formatSettings(o.Settings)
	if err != nil {
		return nil, err
	}
	s := &Server{log: f.log, settings: settings, port: o.Port}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting PostgreSQL: %w", err), s.scratch.remove())
		}
	}()
	if o.DataDir == "" {
		root := diskRoot()
		if !o.OnDisk {
			root = cmp.Or(memoryRoot(), root)
		}
		if s.scratch, err = newScratch(root); err != nil {
			return nil, err
		}
		o.DataDir = s.scratch.dataDir()
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, err
	}
	major, err := readMajor(dir)
	if err != nil {
		return nil, err
	}
	if s.bin, err = f.findBinaries(ctx, o.BinDir, major); err != nil {
		if major != 0 {
			err = fmt.Errorf("%s holds data of PostgreSQL %d: %w", dir, major, err)
		}
		return nil, err
	}
	var template *cluster
	if s.scratch != nil {
		template = f.findTemplate(ctx, s.bin)
	}
	if s.cluster, err = openCluster(ctx, s.bin, dir, template); err != nil {
		return nil, err
	}
	if err := s.launchOnPort(ctx); err != nil {
		return nil, err
	}
	s.log.Info("PostgreSQL started", "version", s.bin.version, "port", s.port, "dir", dir)
	return s, nil
}

// launchOnPort launches the server on its port, or on a free one if it has none yet.
func (s *Server) launchOnPort(ctx context.Context) error {
	if s.port != 0 {
		return s.launch(ctx)
	}
	var err error
	for range portTries {
		if s.port, err = FindFreePort(ctx); err != nil {
			return err
		}
		if err = s.launch(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// launch starts the server process and waits until it is ready. It kills a process that does not
// become ready.
func (s *Server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	p, err := startProcess(ctx, s.bin, s.cluster, s.port, s.settings, s.log)
	if err != nil {
		return err
	}
	if err := p.waitReady(ctx, s.cluster.dir, s.port); err != nil {
		return errors.Join(err, p.kill())
	}
	s.proc.Store(p)
	return nil
}

// URL returns the address of the database "postgres" with the superuser's name and password.
// [Server.Restart] does not change it.
func (s *Server) URL() string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.cluster.password),
		Host:     net.JoinHostPort(loopback, strconv.Itoa(s.port)),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Done returns a channel that is closed when the server process has ended for any reason. After
// [Server.Restart] it returns the channel of the new process.
func (s *Server) Done() <-chan struct{} { return s.proc.Load().done }

// Stop shuts the server down: it rolls back open transactions and closes connections. A throw-away
// server does not write its memory to disk, and its directory is removed. Other servers need no
// recovery at the next start. After two minutes Stop kills the server and returns an error;
// committed data is not lost. Repeated calls have no effect.
func (s *Server) Stop() error {
	s.ops.Lock()
	defer s.ops.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	how := fastShutdown
	if s.scratch != nil {
		how = immediateShutdown
	}
	err := s.proc.Load().stop(how)
	if rerr := s.scratch.remove(); rerr != nil {
		err = errors.Join(err, rerr)
	}
	if err != nil {
		return fmt.Errorf("stopping PostgreSQL: %w", err)
	}
	s.log.Info("PostgreSQL stopped", "port", s.port)
	return nil
}

// Kill simulates a crash for fault tests: it ends the server with SIGKILL and waits for the end of
// all its processes. The directory stays. Kill has no effect after the server's end.
func (s *Server) Kill() error {
	s.ops.Lock()
	defer s.ops.Unlock()
	return s.proc.Load().kill()
}

// Restart starts the server again on the same directory and port. It stops a running server first.
// It returns when the server accepts connections, after crash recovery. The context bounds the
// start only. After [Server.Stop] it returns an error.
func (s *Server) Restart(ctx context.Context) error {
	s.ops.Lock()
	defer s.ops.Unlock()
	if s.stopped {
		return errors.New("restarting PostgreSQL: the server was stopped")
	}
	if err := s.proc.Load().stop(fastShutdown); err != nil {
		return fmt.Errorf("restarting PostgreSQL: %w", err)
	}
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("restarting PostgreSQL: %w", err)
	}
	return nil
}

// formatSettings returns the command-line options for the launcher's and the caller's settings,
// sorted by name.
func formatSettings(extra map[string]string) ([]string, error) {
	all := map[string]string{
		"max_connections": "300",
		"timezone":        "UTC",
		"log_timezone":    "UTC",
	}
	for name, value := range extra {
		// The server ignores case in names and reads "-" as "_".
		key := strings.ReplaceAll(strings.ToLower(name), "-", "_")
		switch key {
		case "fsync", "full_page_writes":
			return nil, fmt.Errorf("setting %s is refused: a crash could destroy the data", name)
		case "listen_addresses", "port", "unix_socket_directories", "data_directory", "hba_file", "external_pid_file", "logging_collector":
			return nil, fmt.Errorf("setting %s is refused: the launcher depends on it", name)
		}
		all[key] = value
	}
	var args []string
	for _, name := range sortedKeys(all) {
		args = append(args, "-c", name+"="+all[name])
	}
	return args, nil
}
