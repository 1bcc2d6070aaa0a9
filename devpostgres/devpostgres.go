// Package devpostgres runs a private PostgreSQL for development and tests.
//
// [Start] finds the binaries on the machine or fetches them, makes a cluster in a directory, starts the server on the
// loopback interface and returns once it accepts connections. The cluster is a real one: durable, password
// protected, in UTC, sorting as the C locale does. It is no way to run a library's production database.
//
// Linux and macOS are supported. On Linux the server ends with the process that started it, however that one dies;
// on macOS a launcher killed with SIGKILL leaves its server behind, and the next Start on that directory names its pid.
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

	// readyTimeout bounds the wait for a started server, crash recovery included.
	readyTimeout = 2 * time.Minute
	// stopTimeout bounds a shutdown. A fast one takes some ten milliseconds on a laptop; on a slow disk it is as long
	// as the server needs to write out what it holds in memory.
	stopTimeout = 2 * time.Minute
	// portTries is how often another free port is tried when somebody takes it between the search and the bind.
	portTries = 5
)

// Options says where a server keeps its data and how it runs. The zero value is a throw-away server on a free port.
type Options struct {
	// DataDir is the directory of the cluster. It is made when it is missing or empty, and its parents too.
	// Empty means a throw-away directory, removed by [Server.Stop].
	DataDir string
	// BinDir is the folder with postgres and initdb (PG_BIN). Empty means: search. A folder that is named but
	// unusable is an error, never a reason to search.
	BinDir string
	// Port is the TCP port on 127.0.0.1. 0 means a free one.
	Port int
	// Log receives the server's own output (level debug), downloads and installations. Nil means none.
	Log *slog.Logger
	// Settings are further server settings by name, such as max_connections (300 when it is absent). Those the
	// launcher depends on (addresses, port, directories) and those that risk data (fsync) are refused.
	Settings map[string]string
}

// Server is a running PostgreSQL. Its methods may be called from several goroutines.
type Server struct {
	log      *slog.Logger
	bin      binaries
	cluster  cluster
	settings []string
	scratch  *scratch // nil when the data stays
	port     int

	ops     sync.Mutex // one Stop, Kill or Restart at a time
	stopped bool       // guarded by ops
	proc    atomic.Pointer[process]
}

// Start makes the cluster if there is none, starts the server and returns when it accepts connections. The context
// ends the start only: afterwards the server runs until [Server.Stop]. A start is also given up two minutes after
// the server process began.
//
// It is an error, and nothing is changed, when another server runs on the directory, when the directory holds
// something else, or when no binaries of the cluster's major version are found.
func Start(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, o, newFinder(cmp.Or(o.Log, slog.New(slog.DiscardHandler))))
}

func start(ctx context.Context, o Options, f *finder) (_ *Server, err error) {
	if !supported {
		return nil, errors.New("starting PostgreSQL is not supported on this system: run one and name it in DATABASE_URL")
	}
	settings, err := settingArgs(o.Settings)
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
		if s.scratch, err = newScratch(); err != nil {
			return nil, err
		}
		o.DataDir = s.scratch.dataDir()
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, err
	}
	major, err := clusterMajor(dir)
	if err != nil {
		return nil, err
	}
	if s.bin, err = f.find(ctx, o.BinDir, major); err != nil {
		if major != 0 {
			err = fmt.Errorf("%s holds data of PostgreSQL %d: %w", dir, major, err)
		}
		return nil, err
	}
	if s.cluster, err = openCluster(ctx, s.bin, dir); err != nil {
		return nil, err
	}
	if err := s.launchOnPort(ctx); err != nil {
		return nil, err
	}
	s.log.Info("PostgreSQL started", "version", s.bin.version, "port", s.port, "dir", dir)
	return s, nil
}

// launchOnPort launches the server on its port, or on a free one when it has none yet.
func (s *Server) launchOnPort(ctx context.Context) error {
	if s.port != 0 {
		return s.launch(ctx)
	}
	var err error
	for range portTries {
		if s.port, err = freePort(ctx); err != nil {
			return err
		}
		if err = s.launch(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// launch starts the server process and waits until it is ready; a process that does not get there is killed.
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

// URL returns the address of the database "postgres" for its superuser, password included. It stays the same over
// [Server.Restart].
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

// Done returns a channel that is closed when the server process has ended, wanted or not. After [Server.Restart]
// there is a new process and Done returns a new channel.
func (s *Server) Done() <-chan struct{} { return s.proc.Load().done }

// Stop shuts the server down: open transactions are rolled back and their connections closed. A throw-away server
// writes nothing out and its directory is removed; any other one begins the next time without a recovery. A server
// that has not ended two minutes later is killed, which is an error but loses no committed data. Stop does nothing
// when the server is stopped already.
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

// Kill ends the server with SIGKILL and waits until all its processes are gone, as a crash would; the directory
// stays. It is for fault tests. It does nothing when the server has ended already.
func (s *Server) Kill() error {
	s.ops.Lock()
	defer s.ops.Unlock()
	return s.proc.Load().kill()
}

// Restart starts the server again on the same directory and port, after [Server.Kill] or a crash; a server that
// still runs is stopped first. It returns when connections are accepted, crash recovery done. The context ends the
// start only. It is an error after [Server.Stop].
func (s *Server) Restart(ctx context.Context) error {
	s.ops.Lock()
	defer s.ops.Unlock()
	if s.stopped {
		return errors.New("restarting PostgreSQL: it was stopped for good")
	}
	if err := s.proc.Load().stop(fastShutdown); err != nil {
		return fmt.Errorf("restarting PostgreSQL: %w", err)
	}
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("restarting PostgreSQL: %w", err)
	}
	return nil
}

// settingArgs returns the command-line options for the settings: the launcher's own, then the caller's by name.
func settingArgs(extra map[string]string) ([]string, error) {
	all := map[string]string{
		"max_connections": "300",
		"timezone":        "UTC",
		"log_timezone":    "UTC",
	}
	for name, value := range extra {
		// The server reads names without regard to case and takes "-" for "_".
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
