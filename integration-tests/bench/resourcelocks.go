package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"checkoutlock/devpostgres"
	"checkoutlock/integration-tests/mutualtls"
)

// lockService is a running resource-locks, or the published server of Locket.
type lockService struct {
	*process
	name                     string
	locket, locktopus, mutex string // addresses
	databaseURL              string
}

// hasResourceLocks reports whether the revision has the service.
func (b build) hasResourceLocks() bool {
	_, err := os.Stat(filepath.Join(b.dir, resourceLocks))
	return err == nil
}

// newLockService chooses free addresses.
func newLockService(ctx context.Context, name string) (*lockService, error) {
	s := &lockService{name: name}
	for _, addr := range []*string{&s.locket, &s.locktopus, &s.mutex} {
		port, err := devpostgres.FindFreePort(ctx)
		if err != nil {
			return nil, err
		}
		*addr = "127.0.0.1:" + strconv.Itoa(port)
	}
	return s, nil
}

// startResourceLocks starts the service with three of its fronts on an empty database.
func startResourceLocks(ctx context.Context, b *bench, build build, certs *mutualtls.Files) (*lockService, error) {
	s, err := newLockService(ctx, build.name)
	if err != nil {
		return nil, err
	}
	if s.databaseURL, err = b.db.fork(ctx, "locks_"+strconv.FormatInt(time.Now().UnixNano(), 36)); err != nil {
		return nil, err
	}
	s.process, err = startProcess(ctx, filepath.Join(build.dir, resourceLocks), []string{"serve"}, "/admin/health/ready", append(
		s.listSettings(certs),
		"DATABASE_URL="+s.databaseURL, "DATABASE_MAX_CONNS=32", "LOG_LEVEL=warn", "STAFF_AUTH=none", "HTTP_ADDR=127.0.0.1",
	))
	return s, err
}

// listSettings returns the settings for the addresses and for mutual TLS.
func (s *lockService) listSettings(certs *mutualtls.Files) []string {
	return []string{
		"LOCKET_ADDR=" + s.locket, "LOCKET_TLS_CERT=" + certs.Cert, "LOCKET_TLS_KEY=" + certs.Key, "LOCKET_TLS_CA=" + certs.Cert,
		"LOCKTOPUS_ADDR=" + s.locktopus, "MUTEX_ADDR=" + s.mutex,
	}
}

// buildLocket builds the published server of Locket and returns the program.
func buildLocket(ctx context.Context, dir string) (string, error) {
	root, err := gitOutput(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "locket")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "code.cloudfoundry.org/locket/cmd/locket") //nolint:gosec // the program of a pinned module
	cmd.Dir = filepath.Join(root, "integration-tests", "locketserver")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the published server of Locket: %w\n%s", err, out)
	}
	return program, nil
}

// startLocket starts the published server of Locket on an empty database of the same
// server, with as many connections as the service has.
func startLocket(ctx context.Context, b *bench, dir string, certs *mutualtls.Files) (*lockService, error) {
	program, err := buildLocket(ctx, dir)
	if err != nil {
		return nil, err
	}
	port, err := devpostgres.FindFreePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &lockService{name: "Locket 1.5", locket: "127.0.0.1:" + strconv.Itoa(port)}
	if s.databaseURL, err = b.db.fork(ctx, "locket_"+strconv.FormatInt(time.Now().UnixNano(), 36)); err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"listen_address": s.locket, "ca_file": certs.Cert, "cert_file": certs.Cert, "key_file": certs.Key,
		"database_driver": "postgres", "database_connection_string": s.databaseURL, "max_open_database_connections": 32,
		"log_level": "error", "report_interval": "1m",
		"loggregator": map[string]any{ // the server does not start without them; no agent answers
			"loggregator_ca_path": certs.Cert, "loggregator_cert_path": certs.Cert, "loggregator_key_path": certs.Key, "loggregator_api_port": 1,
		},
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "locket.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	s.process = &process{cmd: newCommand(program, []string{"-config=" + file}, nil)}
	err = s.start(ctx, func() error {
		conn, err := net.Dial("tcp", s.locket) //nolint:noctx // on loopback
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// stop stops a service that may have failed to start.
func (s *lockService) stop() error {
	if s == nil {
		return nil
	}
	return s.process.stop()
}

func stopLockServices(services []*lockService) error {
	var errs []error
	for _, s := range services {
		errs = append(errs, s.stop())
	}
	return errors.Join(errs...)
}
