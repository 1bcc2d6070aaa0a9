package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/config/command"
	"checkoutlock/devpostgres/testserver"
)

var run = program.Run

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }

func TestRun_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	url := "DATABASE_URL=" + testserver.URL(t)
	for _, tt := range []struct {
		name    string
		args    []string
		environ []string
		says    string
	}{
		{name: "an unknown command", args: []string{"lock"}, environ: []string{url}, says: `there is no command "lock"`},
		{name: "settings that cannot be used", args: nil, environ: []string{"PORT=x"}, says: "DATABASE_URL is empty"},
		{name: "arguments of serve", args: []string{"serve", "x"}, environ: []string{url}, says: "serve takes flags alone"},
		{
			name: "an unquoted reason", args: []string{"release", "-reason", "on", "leave"}, environ: []string{url},
			says: "quote a value of several words",
		},
		{
			name: "a release without a target", args: []string{"release", "-reason", "x"}, environ: []string{url},
			says: "-namespace",
		},
		{
			name: "down and repair", args: []string{"migrate", "-down", "-repair"}, environ: []string{url},
			says: "-repair goes without -down",
		},
		{
			name: "no file of the published server", args: []string{"locket", "-config", "/nowhere"}, environ: []string{url},
			says: "invalid-config-file",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := run(t.Context(), command.Process{
				Args: tt.args, Environ: tt.environ, Stdout: &out, Stderr: &out,
			}); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %s", err, tt.says)
			}
		})
	}
}

func TestRun_PrintsHelp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), command.Process{
		Args: []string{"help"}, Environ: nil, Stdout: &out, Stderr: &out,
	}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: %v", err)
	}
}

func TestVersion_NeedsNoSettings(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "-version", "--version"} {
		var out bytes.Buffer
		err := run(t.Context(), command.Process{Args: []string{arg}, Environ: []string{"LOCK_TTL_MS=0"}, Stdout: &out})
		if err != nil || !strings.HasPrefix(out.String(), "resource-locks devel") {
			t.Errorf("%s: got %q, %v", arg, &out, err)
		}
	}
}

func TestRun_MigratesAndLists(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + testserver.URL(t)}
	var out bytes.Buffer
	for _, args := range [][]string{{"migrate"}, {"list", "-namespace", "no such namespace"}} {
		if err := run(t.Context(), command.Process{
			Args: args, Environ: environ, Stdout: &out, Stderr: &bytes.Buffer{},
		}); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	if !strings.Contains(out.String(), "LOCK") || !strings.Contains(out.String(), "CLAIM") {
		t.Errorf("got %s", &out)
	}
}

// migrated returns a connection to a migrated database, and a function that runs a command on it and returns
// its output.
func migrated(t *testing.T) (*pgx.Conn, func(args ...string) string) {
	t.Helper()
	url := testserver.URL(t)
	call := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), command.Process{
			Args: args, Environ: []string{"DATABASE_URL=" + url}, Stdout: &out, Stderr: io.Discard,
		}); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out.String()
	}
	call("migrate")
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn, call
}

// Clients choose names and owners, which must look like no other row and move no cursor.
func TestRun_ListsTextsOfClientsInOneLine(t *testing.T) {
	t.Parallel()
	conn, call := migrated(t)
	namespace, id := "cli/"+uuid.NewString(), uuid.NewString()
	const insert = `INSERT INTO resource_locks.lock
		(id, fence, granted_at, renewed_at, expires_at, sweep_after, replaced, namespace, name, owner, kind, value)
		VALUES ($1, 1, now(), now(), now() + interval '1 hour', now(), false, $2, E'd\n1\tx', E'\x1b[1Aann', '', '')`
	if _, err := conn.Exec(t.Context(), insert, id, namespace); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(call("list", "-namespace", namespace), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "  d 1 x  ") || !strings.Contains(lines[1], "  [1Aann  ") {
		t.Errorf("got %q, want a lock in one line, and no claims", lines)
	}
	released := call("release", "-namespace", namespace, "-name", "d\n1\tx", "-id", id, "-reason", "a test")
	if !strings.HasSuffix(released, " by [1Aann\n") {
		t.Errorf("got %q, want the owner without what moves a cursor", released)
	}
}

// A person who looks for a lock has to find it, or to know that the list is cut off.
func TestRun_ListsAllLocks(t *testing.T) {
	t.Parallel()
	conn, call := migrated(t)
	namespace := "cli/" + uuid.NewString()
	for _, insert := range []string{
		`INSERT INTO resource_locks.lock
			(id, fence, granted_at, renewed_at, expires_at, sweep_after, replaced, namespace, name, owner, kind, value)
			SELECT gen_random_uuid(), n, now(), now(), now() + '1 hour', now() + '1 hour', false, $1, n::text, 'ann', '', ''
			FROM generate_series(1, 1001) n`,
		`INSERT INTO resource_locks.claim (id, instance, number, held_at, abandon, resources, namespace, owner)
			SELECT gen_random_uuid(), gen_random_uuid(), n, now(), '0', 0, $1, 'bob' FROM generate_series(1, 1001) n`,
	} {
		if _, err := conn.Exec(t.Context(), insert, namespace); err != nil {
			t.Fatal(err)
		}
	}
	got := call("list", "-namespace", namespace)
	if locks, claims := strings.Count(got, "  ann  "), strings.Count(got, "  bob  "); locks != 1001 || claims != 1000 ||
		!strings.HasSuffix(got, "\nThe list ends after 1000 claims.\n") {
		t.Errorf("got %d locks and %d claims, want all locks and the end of the list: %q", locks, claims, got[len(got)-300:])
	}
}

// started is an output that reports its first line.
type started chan string

func (s started) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

func TestRun_ReplacesThePublishedLocket(t *testing.T) {
	t.Parallel()
	url := testserver.URL(t)
	secret := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(secret, []byte(url), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ url, variable string }{ // in the file, and in the environment
		"by its file alone":           {url: url, variable: "LOG_LEVEL=error"},
		"with an empty variable":      {url: url, variable: "DATABASE_URL="},
		"with a variable that wins":   {url: "postgres://u@127.0.0.1:1/x", variable: "DATABASE_URL=" + url},
		"with a file of the variable": {url: "postgres://u@127.0.0.1:1/x", variable: "DATABASE_URL_FILE=" + secret},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replaceLocket(t, tt.url, tt.variable)
		})
	}
}

// replaceLocket runs the service with a file of the published server until it has started.
func replaceLocket(t *testing.T, url, variable string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "locket.json")
	content := `{"listen_address": "127.0.0.1:0", "database_driver": "postgres", ` +
		`"database_connection_string": "` + url + `"}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out, ended := make(started, 1), make(chan error, 1)
	go func() {
		ended <- run(ctx, command.Process{
			Args:    []string{"locket", "-config", file},
			Environ: []string{"LOCKET_PLAINTEXT=true", "PORT=0", "STAFF_AUTH=none", variable},
			Stdout:  out, Stderr: &bytes.Buffer{},
		})
	}()
	select {
	case line := <-out:
		if line != "locket.started\n" {
			t.Errorf("got %q", line)
		}
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("it does not start")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServe_LogsTheErrorThatEndsIt(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	environ := []string{"DATABASE_URL=postgres://u@127.0.0.1:1/x", "DATABASE_WAIT=0", "PORT=0", "STAFF_AUTH=none"}
	err := run(t.Context(), command.Process{Args: nil, Environ: environ, Stdout: io.Discard, Stderr: &log})
	if logged, ok := errors.AsType[*command.StatusError](err); !ok || !logged.Logged {
		t.Errorf("got %v, want an error that is in the log", err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if !strings.Contains(lines[0], `"msg":"starting","service":"resource-locks","version":"devel"`) {
		t.Errorf("the log begins with %s, want the build", lines[0])
	}
	var last struct{ Level, Service, Err string }
	if e := json.Unmarshal([]byte(lines[len(lines)-1]), &last); e != nil || last.Level != "ERROR" ||
		last.Service != "resource-locks" || last.Err == "" {
		t.Errorf("the log ends with %q, want an ERROR with the cause", lines[len(lines)-1])
	}
}

// A person at a terminal waits for them, and they print nothing meanwhile.
func TestListAndRelease_DoNotWaitForADatabase(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"list"},
		{"release", "-namespace", "mutex", "-name", "a", "-id", uuid.NewString(), "-reason", "a test"},
	} {
		err := run(t.Context(), command.Process{
			Args: args, Environ: []string{"DATABASE_URL=postgres://u@127.0.0.1:1/x", "DATABASE_WAIT=1ms"},
			Stdout: io.Discard, Stderr: io.Discard,
		})
		ended, ok := errors.AsType[*command.StatusError](err)
		if !ok || ended.Status != command.Unreachable || strings.Contains(err.Error(), "waited") {
			t.Errorf("%s: got %v, want status %d without a wait", args[0], err, command.Unreachable)
		}
	}
}
