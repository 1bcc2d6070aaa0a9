package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"checkoutlock/integration-tests/debian"
)

// fakeMachine is a finder on a simulated Debian, as root. programs are those in PATH with
// their versions. The simulated apt-get adds Chromium.
type fakeMachine struct {
	*finder
	programs map[string]string
	ran      []string
	said     []string
	busy     int // so many calls of apt-get find its lock held
	broken   bool
}

func newFakeMachine(t *testing.T) *fakeMachine {
	t.Helper()
	m := &fakeMachine{programs: map[string]string{"apt-get": "apt"}}
	marker := filepath.Join(t.TempDir(), "debian_version")
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	m.finder = &finder{
		system: debian.System{
			GOOS: "linux", Root: true, Marker: marker,
			LookPath: func(name string) (string, error) {
				if _, ok := m.programs[name]; !ok {
					return "", exec.ErrNotFound
				}
				return name, nil
			},
			Say: func(s string) { m.said = append(m.said, s) },
			Run: m.run,
		},
		cacheDir: func() (string, error) { return cache, nil },
	}
	return m
}

func (m *fakeMachine) run(_ context.Context, _ string, env []string, name string, args ...string) (string, error) {
	m.ran = append(m.ran, name+" "+strings.Join(args, " "))
	if name != "apt-get" {
		if m.programs[name] == "" {
			return "", errors.New(name + " does not run")
		}
		return m.programs[name], nil
	}
	if !slices.Contains(env, "DEBIAN_FRONTEND=noninteractive") {
		return "", errors.New("apt-get would ask questions")
	}
	if m.busy--; m.busy >= 0 {
		return "", errors.New("E: Could not get lock /var/lib/dpkg/lock-frontend")
	}
	if m.broken {
		return "", errors.New("E: Unable to locate package chromium")
	}
	if slices.Contains(args, "install") {
		m.programs["chromium-headless-shell"] = "Chromium 156.0"
	}
	return "", nil
}

func TestFinder_Chromium(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fakeMachine)
		want   string // the program, empty for an error
		errs   []string
		apt    int // calls of apt-get
	}{
		"in PATH": {
			change: func(m *fakeMachine) { m.programs["google-chrome"] = "Google Chrome 150" }, want: "google-chrome",
		},
		"first of two": {change: func(m *fakeMachine) {
			m.programs["chromium-browser"], m.programs["chromium"] = "Chromium 1", "Chromium 2"
		}, want: "chromium"},
		"the headless shell comes first": {change: func(m *fakeMachine) {
			m.programs["chromium"], m.programs["chromium-headless-shell"] = "Chromium 1", "Chromium 2"
		}, want: "chromium-headless-shell"},
		"one that is broken": {
			change: func(m *fakeMachine) { m.programs["chromium"], m.programs["google-chrome"] = "", "Google Chrome 150" },
			want:   "google-chrome",
		},
		"a stub in its name": {
			change: func(m *fakeMachine) { m.programs["chromium-browser"] = "Install the snap!" },
			want:   "chromium-headless-shell", apt: 2,
		},
		"given": {change: func(m *fakeMachine) {
			m.given, m.programs["mine"], m.programs["chromium"] = "mine", "Chromium 3", "Chromium 2"
		}, want: "mine"},
		"given and missing": {
			change: func(m *fakeMachine) { m.given, m.programs["chromium"] = "mine", "Chromium 2" },
			errs:   []string{"CHROME_BIN", "mine"},
		},
		"installed":       {change: func(*fakeMachine) {}, want: "chromium-headless-shell", apt: 2},
		"apt-get is busy": {change: func(m *fakeMachine) { m.busy = 1 }, want: "chromium-headless-shell", apt: 3},
		"no root": {
			change: func(m *fakeMachine) { m.system.Root = false },
			errs:   []string{"install it", "CHROME_BIN", "BROWSER_TESTS=skip", "takes root"},
		},
		"no Debian": {
			change: func(m *fakeMachine) { m.system.Marker = "/nowhere" },
			errs:   []string{"CHROME_BIN", "neither Debian nor Ubuntu"},
		},
		"a Mac": {change: func(m *fakeMachine) { m.system.GOOS = "darwin" }, errs: []string{"CHROME_BIN"}},
		"no such package": {
			change: func(m *fakeMachine) { m.broken = true }, errs: []string{"CHROME_BIN", "Unable to locate package"}, apt: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFakeMachine(t)
			c.change(m)
			got, err := m.findChromium(t.Context())
			if got != c.want || (err == nil) != (c.want != "") {
				t.Fatalf("got %q, %v, want %q", got, err, c.want)
			}
			for _, part := range c.errs {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got the error %q, want it to say %q", err, part)
				}
			}
			var apt int
			for _, line := range m.ran {
				if strings.HasPrefix(line, "apt-get") {
					apt++
				}
			}
			if apt != c.apt || (len(m.said) == 1) != (c.apt > 0) {
				t.Errorf("got %d calls of apt-get and the messages %q, want %d calls and an announcement of them", apt, m.said,
					c.apt)
			}
		})
	}
}

func TestFinder_TakesTurns(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	m.programs["chromium"] = "Chromium 2"
	cache, err := m.cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	held := flock.New(filepath.Join(cache, "chromium.lock"))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if got, err := m.findChromium(ctx); !errors.Is(err, context.DeadlineExceeded) || len(m.ran) > 0 {
		t.Errorf("got %q, %v and ran %q while another process holds the lock, want a wait", got, err, m.ran)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := m.findChromium(t.Context()); err != nil || got != "chromium" {
		t.Errorf("got %q, %v after its end, want chromium", got, err)
	}
}

func TestFinder_Axe(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	if _, err := m.loadAxe(t.Context()); err == nil || !strings.Contains(err.Error(), "install npm") {
		t.Errorf("got %v without npm, want an error that names it", err)
	}

	m.programs["npm"] = "npm"
	m.system.Run = func(_ context.Context, dir string, _ []string, _ string, _ ...string) (string, error) {
		return "", os.WriteFile(filepath.Join(dir, "axe-core.tgz"), packArchive(t, axeFile, "not axe"), 0o600)
	}
	if _, err := m.loadAxe(t.Context()); err == nil || !strings.Contains(err.Error(), "not the expected one") {
		t.Errorf("got %v for another archive, want an error", err)
	}

	cache, err := m.cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v in the cache folder, want no file", left, err)
	}
	if err := os.WriteFile(filepath.Join(cache, axePackage+".min.js"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := m.loadAxe(t.Context()); err != nil || got != "kept" {
		t.Errorf("got %q, %v, want the cached script", got, err)
	}
}

func TestExtractScript(t *testing.T) {
	t.Parallel()
	if got, err := extractScript(packArchive(t, axeFile, "script")); err != nil || string(got) != "script" {
		t.Errorf("got %q, %v, want the script", got, err)
	}
	if _, err := extractScript(packArchive(t, "package/README.md", "words")); err == nil ||
		!strings.Contains(err.Error(), axeFile) {
		t.Errorf("got %v for an archive without the script, want an error", err)
	}
	if _, err := extractScript([]byte("no archive")); err == nil {
		t.Error("got no error for an invalid archive")
	}
}

func packArchive(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	err := tw.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600})
	if err == nil {
		_, err = tw.Write([]byte(content))
	}
	if err = errors.Join(err, tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
