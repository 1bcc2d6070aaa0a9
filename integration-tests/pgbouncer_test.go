package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/devpostgres"
	"checkoutlock/integration-tests/debian"
)

// findPgBouncer and findHAProxy return the path of a program.
var (
	findPgBouncer = findPackaged("PgBouncer", "pgbouncer")
	findHAProxy   = findPackaged("HAProxy", "haproxy")
)

// findPackaged returns a search for a program, which has the name of Debian's package. If it is
// missing, the search installs the package once.
func findPackaged(name, file string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		system := debian.This()
		if program, err := system.LookPath(file); err == nil {
			return program, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		ierr := system.Install(ctx, name, file)
		program, err := system.LookPath(file)
		if err != nil {
			return "", errors.Join(err, ierr)
		}
		return program, nil
	})
}

// startPgBouncer starts a PgBouncer in transaction mode with so many connections to the
// database, and returns its URL. It skips the test if there is no PgBouncer.
func startPgBouncer(t *testing.T, database string, pool int) string {
	t.Helper()
	program, err := findPgBouncer()
	if err != nil {
		t.Skipf("there is no PgBouncer to test with (on Debian, as root: apt-get install pgbouncer): %v", err)
	}
	to, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	password := ""
	if to.Password != "" { // an empty one is a syntax error for PgBouncer
		password = fmt.Sprintf(" password='%s'", to.Password)
	}
	port := findFreePort(t)
	config := filepath.Join(t.TempDir(), "pgbouncer.ini")
	if err := os.WriteFile(config, fmt.Appendf(nil, `[databases]
%s = host=%s port=%d user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
`, to.Database, to.Host, to.Port, to.User, password, port, pool), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{config}
	if os.Geteuid() == 0 { // which PgBouncer refuses
		args = []string{"-u", unprivilegedUser(), config}
	}
	ended := runProgram(t, program, args...)
	through := url.URL{
		Scheme: "postgres", User: url.User(to.User), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/" +
			to.Database,
		RawQuery: "sslmode=disable&default_query_exec_mode=exec",
	}
	waitUntil(t, patience, "PgBouncer accepts connections", func() bool {
		select {
		case <-ended:
			t.Fatal("PgBouncer ended")
		default:
		}
		conn, err := pgx.Connect(t.Context(), through.String())
		return err == nil && conn.Close(t.Context()) == nil
	})
	return through.String()
}

// runProgram runs a program until the test ends. The channel is closed when it has ended. If this
// process dies, the shell's pipe is closed and the shell stops the program.
func runProgram(t *testing.T, program string, args ...string) <-chan struct{} {
	t.Helper()
	stopper := `exec 3<&0; (read -r _ <&3; kill $$) >/dev/null 2>&1 & exec "$@" 3<&-`
	cmd := osexec.Command("/bin/sh", append([]string{"-c", stopper, "sh", program}, args...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	alive, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // a signal stops it, so the status has no meaning
	}()
	t.Cleanup(func() {
		_ = alive.Close()
		<-ended
		if t.Failed() {
			t.Logf("%s wrote:\n%s", program, said.String())
		}
	})
	return ended
}

// unprivilegedUser returns a user without rights.
func unprivilegedUser() string {
	if _, err := user.Lookup("postgres"); err == nil {
		return "postgres"
	}
	return "nobody"
}

// findFreePort returns a free port of 127.0.0.1, which no client gets as its own port.
func findFreePort(t *testing.T) int {
	t.Helper()
	port, err := devpostgres.FindFreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
