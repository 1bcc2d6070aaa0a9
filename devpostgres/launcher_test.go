package devpostgres

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// launchDir makes the test binary a launcher, which starts a server on the directory and runs until
// it is killed.
const launchDir = "DEVPOSTGRES_TEST_LAUNCH_DIR"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(launchDir); ok {
		launchAndStay(dir)
		return
	}
	os.Exit(m.Run())
}

func launchAndStay(dir string) {
	s, err := Start(context.Background(), Options{DataDir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Stdout.WriteString("started\n")
	<-s.Done()
}

// lineRecorder is a log that tests can read.
type lineRecorder struct {
	mu    sync.Mutex
	all   strings.Builder
	words string
	do    func()
}

// callOn calls do each time the words are logged.
func (r *lineRecorder) callOn(words string, do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.words, r.do = words, do
}

func (r *lineRecorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.do != nil && strings.Contains(string(b), r.words) {
		r.do()
	}
	return r.all.Write(b)
}

func (r *lineRecorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

// startLauncher runs a launcher on dir and returns its process once the server is up.
func startLauncher(t *testing.T, dir string) *os.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), launchDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it is dead in most tests
		cmd.Wait()         //nolint:errcheck // killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "started\n" {
		t.Fatalf("launcher: got %q, %v, want the line started", line, err)
	}
	return cmd.Process
}

func TestServer_EndsWithAKilledLauncher(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	dir := filepath.Join(makeReachableDir(t), "pg")
	launcher := startLauncher(t, dir)
	if got := readPidFile(dir).status; got != "ready" {
		t.Fatalf("server before the kill: got %q, want ready", got)
	}
	if err := launcher.Kill(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the server has shut down", func() bool {
		_, err := os.Stat(filepath.Join(dir, "postmaster.pid"))
		return os.IsNotExist(err)
	})

	s := startServer(t, Options{DataDir: dir})
	if got := queryText(t, s.URL(), "SELECT 'up'"); got != "up" {
		t.Errorf("next start: got %q, want up", got)
	}
}

func TestScratch_SweepsDeadLaunchers(t *testing.T) {
	t.Parallel()
	root := t.TempDir() // launchers of other tests sweep theirs
	live, err := newScratch(root)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newScratch(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.lock.Close(); err != nil { // as at a process's end
		t.Fatal(err)
	}
	next, err := newScratch(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.dir); !os.IsNotExist(err) {
		t.Errorf("directory of a dead launcher: got %v, want it removed", err)
	}
	if _, err := os.Stat(live.dir); err != nil {
		t.Errorf("directory of a live launcher: %v", err)
	}
	for _, s := range []*scratch{live, next} {
		if err := s.remove(); err != nil {
			t.Error(err)
		}
	}
}

func TestDefaultDataDir(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", ".", "..", "a/b", "../a", "/a"} {
		if dir, err := DefaultDataDir(name); err == nil {
			t.Errorf("name %q: got %s, want an error", name, dir)
		}
	}
	name := "checkoutlock-devpostgres-test-" + rand.Text()
	dir, err := DefaultDataDir(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(dir)) })
	if os.Geteuid() == 0 {
		if want := "/var/tmp/" + name + "-0/postgresql"; dir != want {
			t.Errorf("for root: got %s, want %s", dir, want)
		}
	}
	if again, err := DefaultDataDir(name); again != dir || err != nil {
		t.Errorf("second call: got %s, %v, want %s", again, err, dir)
	}
	if s := startServer(t, Options{DataDir: dir}); queryText(t, s.URL(), "SELECT 'up'") != "up" {
		t.Error("no server runs on the directory")
	}
}

func TestMakeOwnDir_RefusesForeignFiles(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	open, link, file := filepath.Join(base, "open"), filepath.Join(base, "link"), filepath.Join(base, "file")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := makeOwnDir(open); err != nil || got != open {
		t.Errorf("own directory: got %q, %v, want no error", got, err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"others may write": open, "link": link, "file": file} {
		if got, err := makeOwnDir(dir); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
}

// waitUntil waits until the condition holds, at most two minutes.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick, give := time.NewTicker(5*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-give:
			t.Fatalf("%s: not within two minutes", what)
		}
	}
}
