// Package resourcelocks tests the whole service resource-locks: all fronts on one engine, on
// a real PostgreSQL, in several instances, while processes are killed.
package resourcelocks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
)

// patience is the longest wait for a condition. Only a fault takes longer, also on a machine of a
// tenth of the usual speed.
const patience = 3 * time.Minute

// Settings of the instances. The times are short, so that tests can wait for them.
const (
	lockTTL        = 2 * time.Second
	abandonTimeout = 500 * time.Millisecond
)

// administrator may release locks of Sunbird by force.
const administrator = "administrator"

var settings = []string{
	"LOCKET_ADDR=127.0.0.1:0", "LOCKET_PLAINTEXT=true", "LOCKTOPUS_ADDR=127.0.0.1:0", "LOCKTOPUS_ABANDON_TIMEOUT=" +
		abandonTimeout.String(),
	"SUNBIRD_ADDR=127.0.0.1:0", "SUNBIRD_AUTH=header", "SUNBIRD_LOCK_TTL=" + lockTTL.String(),
	"SUNBIRD_ADMINS=" + administrator, "SUNBIRD_RESUME_WITHIN=0s",
	"MUTEX_ADDR=127.0.0.1:0", "MUTEX_TTL=" + lockTTL.String(),
	"DATABASE_WAIT=" + patience.String(),
}

// childVariable makes the test binary an instance on that database. It serves until it is
// killed or its standard input ends, so that it does not outlive the test.
const childVariable = "RESOURCE_LOCKS_CHILD_DATABASE"

func TestMain(m *testing.M) {
	if databaseURL := os.Getenv(childVariable); databaseURL != "" {
		if err := serveAsChild(databaseURL); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := testserver.Main(m)
	if err := locketConns.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func serveAsChild(databaseURL string) error {
	instance, err := stack.StartResourceLocks(context.Background(), databaseURL, settings, newLog(os.Stderr))
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(addressesOf(instance)); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, instance.Stop())
}

func newLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// addresses are the URLs of an instance by front.
type addresses map[string]string

func addressesOf(instance *stack.ResourceLocks) addresses {
	at := addresses{}
	for _, front := range []string{"operators", "locket", "locktopus", "sunbird", "mutex"} {
		at[front] = instance.URL(front)
	}
	return at
}

// startInstance runs an instance in this process until the test ends. more overrides
// settings of all instances.
func startInstance(t *testing.T, databaseURL string, more ...string) addresses {
	t.Helper()
	instance, err := stack.StartResourceLocks(t.Context(), databaseURL, slices.Concat(settings, more), newLog(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.CloseIdleConnections() // an unused connection delays the stop by 5 s
		if err := instance.Stop(); err != nil {
			t.Error(err)
		}
	})
	return addressesOf(instance)
}

// child is an instance in a process of its own.
type child struct {
	addresses
	process *os.Process
	exited  <-chan struct{}
}

// startChild runs an instance in a new process until the test ends.
func startChild(t *testing.T, databaseURL string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), childVariable+"="+databaseURL), t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	c := &child{process: cmd.Process, exited: exited}
	line, readErr := bufio.NewReader(stdout).ReadBytes('\n')
	go func() {
		defer close(exited)
		_ = cmd.Wait() // the test kills it
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		c.kill()
	})
	if err := errors.Join(readErr, json.Unmarshal(line, &c.addresses)); err != nil {
		t.Fatalf("the instance did not start: %v", err)
	}
	return c
}

// kill ends the process with SIGKILL.
func (c *child) kill() {
	_ = c.process.Kill()
	<-c.exited
}

// execAll runs statements one after the other.
func execAll(t *testing.T, databaseURL string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	pool := openPool(ctx, t, databaseURL)
	defer pool.Close()
	for _, statement := range statements {
		if _, err := pool.Exec(ctx, statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// createDatabase makes an empty database, so that no other test changes its tables.
func createDatabase(t *testing.T) (databaseURL string) {
	t.Helper()
	server := testserver.URL(t)
	name := "rl_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	execAll(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { execAll(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

func openPool(ctx context.Context, t *testing.T, databaseURL string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.RuntimeParams["default_transaction_isolation"] = "read committed" // that of the server differs
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// openDatabase connects to a database until the test ends.
func openDatabase(t *testing.T, databaseURL string) *pgxpool.Pool {
	t.Helper()
	pool := openPool(t.Context(), t, databaseURL)
	t.Cleanup(pool.Close)
	return pool
}
