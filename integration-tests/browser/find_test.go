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

// machine is a finder on a made-up Debian, as root. The programs that it has in
// PATH, by name, say their version; installed ones appear with apt-get.
type machine struct {
	*finder
	programs map[string]string
	ran      []string
	said     []string
	busy     int // so many calls of apt-get find another one at work
	broken   bool
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{programs: map[string]string{"apt-get": "apt"}}
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

func (m *machine) run(_ context.Context, _ string, env []string, name string, args ...string) (string, error) {
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
		m.programs["chromium"] = "Chromium 156.0"
	}
	return "", nil
}

func TestFinder_Chromium(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*machine)
		want   string // the program, or
		errs   []string
		apt    int // calls of apt-get
	}{
		"in PATH":            {func(m *machine) { m.programs["google-chrome"] = "Google Chrome 150" }, "google-chrome", nil, 0},
		"first of two":       {func(m *machine) { m.programs["chromium-browser"], m.programs["chromium"] = "Chromium 1", "Chromium 2" }, "chromium", nil, 0},
		"one that is broken": {func(m *machine) { m.programs["chromium"], m.programs["google-chrome"] = "", "Google Chrome 150" }, "google-chrome", nil, 0},
		"a stub in its name": {func(m *machine) { m.programs["chromium-browser"] = "Install the snap!" }, "chromium", nil, 2},
		"given": {func(m *machine) {
			m.given, m.programs["mine"], m.programs["chromium"] = "mine", "Chromium 3", "Chromium 2"
		}, "mine", nil, 0},
		"given and missing": {func(m *machine) { m.given, m.programs["chromium"] = "mine", "Chromium 2" }, "", []string{"CHROME_BIN", "mine"}, 0},
		"installed":         {func(*machine) {}, "chromium", nil, 2},
		"apt-get is busy":   {func(m *machine) { m.busy = 1 }, "chromium", nil, 3},
		"no root":           {func(m *machine) { m.system.Root = false }, "", []string{"install it", "CHROME_BIN", "BROWSER_TESTS=skip", "takes root"}, 0},
		"no Debian":         {func(m *machine) { m.system.Marker = "/nowhere" }, "", []string{"CHROME_BIN", "neither Debian nor Ubuntu"}, 0},
		"a Mac":             {func(m *machine) { m.system.GOOS = "darwin" }, "", []string{"CHROME_BIN"}, 0},
		"no such package":   {func(m *machine) { m.broken = true }, "", []string{"CHROME_BIN", "Unable to locate package"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			c.change(m)
			got, err := m.chromium(t.Context())
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
				t.Errorf("got %d calls of apt-get and said %q, want %d calls, and to be told of them", apt, m.said, c.apt)
			}
		})
	}
}

func TestFinder_TakesTurns(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
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
	if got, err := m.chromium(ctx); !errors.Is(err, context.DeadlineExceeded) || len(m.ran) > 0 {
		t.Errorf("got %q, %v and ran %q while another process looks, want to wait", got, err, m.ran)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := m.chromium(t.Context()); err != nil || got != "chromium" {
		t.Errorf("got %q, %v once it is done, want chromium", got, err)
	}
}

func TestFinder_Axe(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if _, err := m.axe(t.Context()); err == nil || !strings.Contains(err.Error(), "install npm") {
		t.Errorf("got %v without npm, want that it is to be installed", err)
	}

	m.programs["npm"] = "npm"
	m.system.Run = func(_ context.Context, dir string, _ []string, _ string, _ ...string) (string, error) {
		return "", os.WriteFile(filepath.Join(dir, "axe-core.tgz"), archive(t, axeFile, "not axe"), 0o600)
	}
	if _, err := m.axe(t.Context()); err == nil || !strings.Contains(err.Error(), "not the expected one") {
		t.Errorf("got %v for another archive, want that it is refused", err)
	}

	cache, err := m.cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v left in the cache folder, want nothing", left, err)
	}
	if err := os.WriteFile(filepath.Join(cache, axePackage+".min.js"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := m.axe(t.Context()); err != nil || got != "kept" {
		t.Errorf("got %q, %v, want what is in the cache folder", got, err)
	}
}

func TestExtractScript(t *testing.T) {
	t.Parallel()
	if got, err := takeOut(archive(t, axeFile, "script")); err != nil || string(got) != "script" {
		t.Errorf("got %q, %v, want the script", got, err)
	}
	if _, err := takeOut(archive(t, "package/README.md", "words")); err == nil || !strings.Contains(err.Error(), axeFile) {
		t.Errorf("got %v for an archive without it, want that it is missing", err)
	}
	if _, err := takeOut([]byte("no archive")); err == nil {
		t.Error("got no error for what is no archive")
	}
}

func archive(t *testing.T, name, content string) []byte {
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
