package devpostgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// makeReachableDir returns a temporary directory that all users can enter, because the server's
// user must. Other users cannot enter the directories of package testing.
func makeReachableDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func startServer(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func mustExec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// queryText returns the text that the statement selects.
func queryText(t *testing.T, url, sql string) string {
	t.Helper()
	var got string
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(&got); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

func TestStart_ServerSettings(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{Settings: map[string]string{"Max-Connections": "41", "work_mem": "5MB"}})
	for name, want := range map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"timezone":                "UTC",
		"fsync":                   "on",
		"full_page_writes":        "on",
		"server_encoding":         "UTF8",
		"lc_messages":             "C",
		"password_encryption":     "scram-sha-256",
		"max_connections":         "41",
		"work_mem":                "5MB",
	} {
		if got := queryText(t, s.URL(), "SELECT current_setting('"+name+"')"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := queryText(t, s.URL(), "SELECT datcollate FROM pg_database WHERE datname = 'postgres'"); got != "C" {
		t.Errorf("collation: got %q, want C", got)
	}
}

func TestStart_DefaultIs300Connections(t *testing.T) {
	t.Parallel()
	if got := queryText(t, startServer(t, Options{}).URL(), "SHOW max_connections"); got != "300" {
		t.Errorf("max_connections: got %s, want 300", got)
	}
}

func TestStart_ThrowAwayServerIsInMemoryIfThereIsSpace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		onDisk bool
		root   func() string
	}{
		"by itself": {onDisk: false, root: func() string { return cmp.Or(memoryRoot(), diskRoot()) }},
		"on disk":   {onDisk: true, root: diskRoot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			roots := []string{filepath.Clean(tt.root())}
			s := startServer(t, Options{OnDisk: tt.onDisk})
			roots = append(roots, filepath.Clean(tt.root())) // servers of other tests may have taken the space meanwhile
			dir := queryText(t, s.URL(), "SHOW data_directory")
			if !slices.Contains(roots, filepath.Dir(filepath.Dir(dir))) {
				t.Errorf("the data is in %s, want it below one of %s", dir, roots)
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after the stop: got %v, want no directory", err)
			}
		})
	}
}

func TestStart_RequiresThePassword(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{})
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("postgres", "wrong")
	if _, err := pgx.Connect(t.Context(), u.String()); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("wrong password: got %v, want 28P01", err)
	}
}

// The password is stored as SCRAM-SHA-256, not in plain text.
func TestStart_StoresTheSecretOfThePassword(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{})
	secret := queryText(t, s.URL(), "SELECT rolpassword FROM pg_authid WHERE rolname = 'postgres'")
	if !strings.HasPrefix(secret, "SCRAM-SHA-256$1:") || strings.Contains(secret, s.cluster.password) {
		t.Errorf("got the secret %s, want one of SCRAM-SHA-256 with one iteration", secret)
	}
}

func TestStart_SecondLauncherGetsThePID(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(makeReachableDir(t), "pg")
	first := startServer(t, Options{DataDir: dir})

	// The port is the same, too. The error must name the directory, not the port.
	_, err := Start(t.Context(), Options{DataDir: dir, Port: first.port})
	want := fmt.Sprintf("pid %d runs on %s", readPidFile(dir).pid, dir)
	if !errors.Is(err, ErrDataDirInUse) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %v with %q", err, ErrDataDirInUse, want)
	}
	if got := queryText(t, first.URL(), "SELECT 'up'"); got != "up" {
		t.Errorf("first server: got %q, want up", got)
	}
}

func TestStart_TwoAtOnceMakeOneCluster(t *testing.T) {
	t.Parallel()
	parent := makeReachableDir(t)
	dir := filepath.Join(parent, "pg")
	const launchers = 3
	errs := make(chan error, launchers)
	for range launchers {
		go func() {
			s, err := Start(context.Background(), Options{DataDir: dir})
			if err == nil {
				t.Cleanup(func() { s.Stop() }) //nolint:errcheck // only to end it
			}
			errs <- err
		}()
	}
	started := 0
	for range launchers {
		switch err := <-errs; {
		case err == nil:
			started++
		case !strings.Contains(err.Error(), "another PostgreSQL"):
			t.Errorf("got %v, want an error about another server", err)
		}
	}
	if started != 1 {
		t.Errorf("%d servers on one directory, want 1", started)
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the parent: got %v, %v, want the cluster alone", entries, err)
	}
}

func TestStart_TakenPortIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Start(t.Context(), Options{Port: l.Addr().(*net.TCPAddr).Port})
	if !errors.Is(err, errPortTaken) {
		t.Errorf("got %v, want %v", err, errPortTaken)
	}
}

func TestStart_GivenPortIsUsed(t *testing.T) {
	t.Parallel()
	port, err := FindFreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, Options{Port: port})
	if want := net.JoinHostPort("127.0.0.1", strconv.Itoa(port)); !strings.Contains(s.URL(), want) {
		t.Errorf("URL %s, want %s in it", s.URL(), want)
	}
}

func TestStart_RefusesForeignDirectories(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"other files": {
			map[string]string{"letter.txt": "dear"}, "is no data directory of PostgreSQL and not empty",
		},
		"an old version's data": {map[string]string{"PG_VERSION": "12\n"}, "holds data of PostgreSQL 12"},
		"an even older version": {map[string]string{"PG_VERSION": "9.6\n"}, "holds data of PostgreSQL 9"},
		"a damaged version":     {map[string]string{"PG_VERSION": "x"}, `holds no version but "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := makeReachableDir(t)
			for file, content := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			// BinDir names the machine's binaries, so that Start fetches and installs nothing.
			f := newFinder(slog.New(slog.DiscardHandler))
			bin, err := f.findBinaries(t.Context(), "", 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = Start(t.Context(), Options{DataDir: dir, BinDir: bin.dir}); err == nil ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			for file, content := range tt.files {
				if got, err := os.ReadFile(filepath.Join(dir, file)); string(got) != content {
					t.Errorf("%s: got %q, %v, want it unchanged", file, got, err)
				}
			}
		})
	}
}

func TestStart_RefusesSettings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"fsync", "FSYNC", "full-page-writes", "listen_addresses", "port", "unix_socket_directories", "data_directory",
	} {
		_, err := Start(t.Context(), Options{Settings: map[string]string{name: "off"}})
		if err == nil || !strings.Contains(err.Error(), "setting "+name+" is refused") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}

func TestStart_UnknownSettingIsShown(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Settings: map[string]string{"no_such_thing": "1"}})
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_thing"`) {
		t.Errorf("got %v, want the server's message", err)
	}
}

func TestStart_SameDirectoryKeepsData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(makeReachableDir(t), "made", "on the way", "pg")
	log := &lineRecorder{}
	first := startServer(t, Options{
		DataDir: dir, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	mustExec(t, connect(t, first.URL()), "CREATE TABLE kept AS SELECT 'still here' AS word")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "database system is shut down") ||
		strings.Contains(got, "immediate shutdown request") {
		t.Errorf("the server did not shut down cleanly:\n%s", got)
	}

	second := startServer(t, Options{DataDir: dir})
	if got := queryText(t, second.URL(), "SELECT word FROM kept"); got != "still here" {
		t.Errorf("got %q, want the data of the first run", got)
	}
	fi, err := os.Stat(filepath.Join(dir, passwordFile))
	if err != nil {
		t.Fatal(err)
	}
	if got := fi.Mode().Perm(); got != 0o600 {
		t.Errorf("password file: got mode %o, want 600", got)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the data directory: got %v, %v, want nothing", entries, err)
	}
}

func TestStart_ThrowAwayClustersAreCopies(t *testing.T) {
	t.Parallel()
	const identifier = "SELECT system_identifier::text FROM pg_control_system()"
	f := newFinder(slog.New(slog.DiscardHandler))
	start := func(o Options) *Server {
		t.Helper()
		s, err := startWithFinder(t.Context(), o, f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	first, second := start(Options{}), start(Options{})
	want := queryText(t, first.URL(), identifier)
	if got := queryText(t, second.URL(), identifier); got != want {
		t.Errorf("a second cluster: got the identifier %s, want a copy with %s", got, want)
	}
	kept := start(Options{DataDir: filepath.Join(makeReachableDir(t), "pg")})
	if got := queryText(t, kept.URL(), identifier); got == want || kept.cluster.password == first.cluster.password {
		t.Errorf("a permanent cluster: got the identifier %s, want its own, and its own password", got)
	}
	f.cacheDir = func() (string, error) { return "", errors.New("no folder") }
	if got := queryText(t, start(Options{}).URL(), identifier); got == want {
		t.Error("without a folder of downloads: got a copy")
	}
}
