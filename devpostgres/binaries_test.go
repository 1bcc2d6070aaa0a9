package devpostgres

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]struct {
		version      string
		major, minor int
	}{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": {version: "15.18", major: 15, minor: 18},
		"postgres (PostgreSQL) 14.0":                             {version: "14.0", major: 14, minor: 0},
		"postgres (PostgreSQL) 9.6.24":                           {version: "9.6.24", major: 9, minor: 6},
		"postgres (PostgreSQL) 19beta1\n":                        {version: "19beta1", major: 19, minor: 0},
		"postgres (PostgreSQL) 19devel (Homebrew)":               {version: "19devel", major: 19, minor: 0},
	} {
		version, major, minor, err := parseVersion(out)
		if err != nil || version != want.version || major != want.major || minor != want.minor {
			t.Errorf("%q: got %q, %d, %d, %v, want %v", out, version, major, minor, err, want)
		}
	}
	for _, out := range []string{
		"", "15.18", "postgres (PostgreSQL)", "postgres (PostgreSQL) ", "postgres (PostgreSQL) devel", "bash: 15",
	} {
		if version, _, _, err := parseVersion(out); err == nil {
			t.Errorf("%q: got %q, want an error", out, version)
		}
	}
}

// writePrograms writes programs into dir. They contain their version, which newFakeFinder reads
// instead of running them.
func writePrograms(t *testing.T, dir, version string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("postgres (PostgreSQL) "+version), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newFakeFinder returns a finder for a simulated machine below base: an empty PATH, folders
// base/usr/*/bin, Linux on amd64, not Debian.
func newFakeFinder(t *testing.T, base string) *finder {
	t.Helper()
	return &finder{
		log: slog.New(slog.DiscardHandler), goos: "linux", goarch: "amd64",
		folders:  []string{filepath.Join(base, "usr/*/bin")},
		lookPath: func(name string) (string, error) { return "", &exec.Error{Name: name, Err: exec.ErrNotFound} },
		cacheDir: func() (string, error) { return base, nil },
		debian:   filepath.Join(base, "debian_version"),
		run: func(_ context.Context, _ string, _ []string, name string, _ ...string) ([]byte, error) {
			return os.ReadFile(name)
		},
	}
}

func TestFinder_Order(t *testing.T) {
	t.Parallel()
	const path, given, cached = "path", "given", "postgresql-" + npmVersion + "-linux-x64/bin"
	for name, tt := range map[string]struct {
		installed map[string]string // folder: version
		given     string
		major     int
		want      string // folder
		wantErr   string
	}{
		"given folder before all": {
			installed: map[string]string{given: "14.1", path: "18.1", "usr/17/bin": "17.2"}, given: given, want: given,
		},
		"PATH before the usual folders": {
			installed: map[string]string{path: "15.1", "usr/17/bin": "17.2"}, want: path,
		},
		"newest of the usual folders": {
			installed: map[string]string{"usr/9.6/bin": "9.6", "usr/17/bin": "17.2", "usr/16/bin": "16.9"}, want: "usr/17/bin",
		},
		"newest by number, not by letters": {
			installed: map[string]string{"usr/a/bin": "17.10", "usr/b/bin": "17.9"}, want: "usr/a/bin",
		},
		"too old in PATH": {
			installed: map[string]string{path: "13.9", "usr/14/bin": "14.2"}, want: "usr/14/bin",
		},
		"installed before downloaded": {
			installed: map[string]string{"usr/14/bin": "14.2", cached: "15.18"}, want: "usr/14/bin",
		},
		"downloaded before": {installed: map[string]string{cached: "15.18"}, want: cached},
		"the version of the data": {
			installed: map[string]string{path: "15.1", "usr/17/bin": "17.2", "usr/16/bin": "16.9"}, major: 16,
			want: "usr/16/bin",
		},
		"data of a version not here": {
			installed: map[string]string{path: "15.1"}, major: 16, wantErr: "is PostgreSQL 15.1, which does not read data of 16",
		},
		"given folder of another version": {
			installed: map[string]string{given: "15.1", "usr/16/bin": "16.1"}, given: given, major: 16, wantErr: "given folder",
		},
		"given folder without programs": {
			installed: map[string]string{path: "15.1"}, given: given, wantErr: filepath.Join(given, "postgres") + " is missing",
		},
		"given folder too old": {
			installed: map[string]string{given: "13.9", path: "15.1"}, given: given, wantErr: "older than 14",
		},
		"no binaries, and advice for the user": {wantErr: "DATABASE_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			f := newFakeFinder(t, base)
			for dir, version := range tt.installed {
				writePrograms(t, filepath.Join(base, dir), version)
				if dir == path {
					// PATH holds a link to one of the programs, as on Debian.
					link := filepath.Join(t.TempDir(), "postgres")
					if err := os.Symlink(filepath.Join(base, dir, "postgres"), link); err != nil {
						t.Fatal(err)
					}
					f.lookPath = findOnly("postgres", link)
				}
			}
			binDir := ""
			if tt.given != "" {
				binDir = filepath.Join(base, tt.given)
			}
			b, err := f.findBinaries(t.Context(), binDir, tt.major)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %v, %v, want %q", b, err, tt.wantErr)
				}
				return
			}
			if want := filepath.Join(base, tt.want); err != nil || b.dir != want {
				t.Errorf("got %s, %v, want %s", b.dir, err, want)
			}
		})
	}
}

// findOnly returns the look-up of a PATH with one program.
func findOnly(name, at string) func(string) (string, error) {
	return func(wanted string) (string, error) {
		if wanted == name {
			return at, nil
		}
		return "", &exec.Error{Name: wanted, Err: exec.ErrNotFound}
	}
}

func TestFinder_SkipsAServerWithoutInitdb(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	f := newFakeFinder(t, base)
	half, whole := writePrograms(t, filepath.Join(base, "half"), "17.1"), writePrograms(t,
		filepath.Join(base, "usr/15/bin"), "15.1")
	if err := os.Remove(filepath.Join(half, "initdb")); err != nil {
		t.Fatal(err)
	}
	f.lookPath = findOnly("postgres", filepath.Join(half, "postgres"))
	if b, err := f.findBinaries(t.Context(), "", 0); err != nil || b.dir != whole {
		t.Errorf("got %s, %v, want %s", b.dir, err, whole)
	}
	if _, err := f.findBinaries(t.Context(), half, 0); err == nil || !strings.Contains(err.Error(), "initdb is missing") {
		t.Errorf("as the given folder: got %v, want an error about initdb", err)
	}
}

func TestFinder_InstallsThePackage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		goos      string
		root      bool
		debian    bool
		installs  bool
		fails     bool
		major     int
		wantErr   string
		wantCalls []string
	}{
		"as root on Debian": {
			goos: "linux", root: true, debian: true, installs: true,
			wantCalls: []string{"update", "install -y --no-install-recommends postgresql"},
		},
		"programs in place despite error": {
			goos: "linux", root: true, debian: true, installs: true, fails: true,
			wantCalls: []string{"update", "install -y --no-install-recommends postgresql"},
		},
		"fails": {
			goos: "linux", root: true, debian: true, fails: true, wantErr: "no such mirror",
			wantCalls: []string{"update", "install -y --no-install-recommends postgresql"},
		},
		"the version of the data": {
			goos: "linux", root: true, debian: true, installs: true, major: 15,
			wantCalls: []string{"update", "install -y --no-install-recommends postgresql-15"},
		},
		"not root":   {goos: "linux", debian: true, installs: true, wantErr: "as root: apt-get install postgresql"},
		"not Debian": {goos: "linux", root: true, installs: true, wantErr: "install the package postgresql of this system"},
		"on a Mac":   {goos: "darwin", root: true, debian: true, installs: true, wantErr: "brew install postgresql@17"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			log := &lineRecorder{}
			f := newFakeFinder(t, base)
			f.goos, f.root, f.log = tt.goos, tt.root, slog.New(slog.NewTextHandler(log, nil))
			f.lookPath = findOnly("apt-get", "/usr/bin/apt-get")
			if tt.debian {
				if err := os.WriteFile(f.debian, []byte("12\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			read := f.run
			var calls []string
			f.run = func(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
				if name != "/usr/bin/apt-get" {
					return read(ctx, dir, env, name, args...)
				}
				calls = append(calls, strings.Join(args, " "))
				if tt.installs && args[0] == "install" {
					writePrograms(t, filepath.Join(base, "usr/15/bin"), "15.18")
				}
				if tt.fails {
					return nil, errors.New("no such mirror")
				}
				return nil, nil
			}
			b, err := f.findBinaries(t.Context(), "", tt.major)
			switch {
			case tt.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %v, want %q", err, tt.wantErr)
				}
			case err != nil || b.version != "15.18":
				t.Errorf("got %q, %v, want 15.18", b.version, err)
			}
			if !slices.Equal(calls, tt.wantCalls) {
				t.Errorf("apt-get calls: got %q, want %q", calls, tt.wantCalls)
			}
			if said := strings.Contains(log.String(), "level=WARN"); said != (tt.wantCalls != nil) {
				t.Errorf("a warning was logged: %t, want %t", said, tt.wantCalls != nil)
			}
		})
	}
}
