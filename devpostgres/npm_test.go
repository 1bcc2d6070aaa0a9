package devpostgres

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// The test simulates a machine without PostgreSQL.
func TestNpm_FetchesAndRuns(t *testing.T) {
	t.Parallel()
	npm, err := exec.LookPath("npm")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("npm is not installed")
	}
	base := makeReachableDir(t)
	f := newFinder(slog.New(slog.DiscardHandler))
	f.folders, f.root = nil, false
	f.lookPath = findOnly("npm", npm)
	f.cacheDir = func() (string, error) { return base, nil }

	if _, err := f.findBinaries(t.Context(), "", 0); err != nil {
		t.Fatal(err)
	}

	f.lookPath = newFakeFinder(t, base).lookPath // npm is missing now
	s, err := startWithFinder(t.Context(), Options{}, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	if got := queryText(t, s.URL(), "SHOW server_version"); got != "15.18" {
		t.Errorf("version: got %s, want 15.18", got)
	}
}

func TestNpm_FetchesOnce(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dest := filepath.Join(base, "dest") // a damaged earlier attempt
	if err := os.MkdirAll(filepath.Join(dest, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	const version = "postgres (PostgreSQL) 15.18"
	b := packArchive(t, entry{
		name: nativePrefix + "bin/postgres", body: version,
	}, entry{name: nativePrefix + "bin/initdb", body: version})
	sum := sha512.Sum512(b)
	f := newFakeFinder(t, base)
	read := f.run
	var fetched atomic.Int32
	f.run = func(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
		if name != "npm" {
			return read(ctx, dir, env, name, args...)
		}
		fetched.Add(1)
		return nil, os.WriteFile(filepath.Join(dir, "p.tgz"), b, 0o600)
	}
	const processes = 8
	errs := make(chan error, processes)
	for range processes {
		go func() {
			errs <- f.fetchPackage(context.Background(), "npm", "linux-x64", base64.StdEncoding.EncodeToString(sum[:]), dest)
		}()
	}
	for range processes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got, err := f.inspect(t.Context(), filepath.Join(dest, "bin")); err != nil || got.version != "15.18" {
		t.Errorf("got %q, %v, want 15.18", got.version, err)
	}
	if got := fetched.Load(); got != 1 {
		t.Errorf("fetched %d times, want once", got)
	}
	if entries, err := os.ReadDir(base); err != nil || len(entries) != 2 {
		t.Errorf("in the cache folder: got %v, %v, want the package and its lock", entries, err)
	}
}

func TestNpm_RefusesAnotherArchive(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	f := newFakeFinder(t, base)
	f.lookPath = findOnly("npm", "npm")
	read := f.run
	f.run = func(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
		if name != "npm" {
			return read(ctx, dir, env, name, args...)
		}
		return nil, os.WriteFile(filepath.Join(dir, "p.tgz"), packArchive(t, entry{
			name: nativePrefix + "bin/postgres", body: "evil",
		}), 0o600)
	}
	_, err := f.findBinaries(t.Context(), "", 0)
	if err == nil || !strings.Contains(err.Error(), "the archive is not the expected one") {
		t.Errorf("got %v, want a refusal", err)
	}
	if entries, err := os.ReadDir(base); err != nil || len(entries) != 1 {
		t.Errorf("left in the cache folder: got %v, %v, want the lock only", entries, err)
	}
}

type entry struct {
	name, body string
	kind       byte // 0 is a file
	link       string
	size       int64 // of the header, if it is not that of the body
}

func packArchive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o600, Size: max(int64(len(e.body)), e.size), Typeflag: e.kind, Linkname: e.link}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Flush(), zw.Close()); err != nil && !strings.Contains(err.Error(), "missed writing") {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestUnpack_KeepsTheNativePart(t *testing.T) {
	t.Parallel()
	const links = `[{"source":"native/lib/libpq.so.5.15","target":"native/lib/libpq.so"}]`
	file := filepath.Join(t.TempDir(), "p.tgz")
	b := packArchive(
		t, entry{name: "package/package.json", body: "{}"},
		entry{name: nativePrefix + "bin/postgres", body: "program"},
		entry{name: nativePrefix + "lib/libpq.so.5.15", body: "library"},
		entry{name: nativePrefix + "pg-symlinks.json", body: links},
	)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(b)
	dir := filepath.Join(t.TempDir(), "native")
	if err := unpackChecked(file, base64.StdEncoding.EncodeToString(sum[:]), dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "lib/libpq.so")); string(got) != "library" {
		t.Errorf("through the link: got %q, %v, want the library", got, err)
	}
	for name, want := range map[string]fs.FileMode{"bin": 0o755, "bin/postgres": 0o755, "lib/libpq.so.5.15": 0o644} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v, want mode %o", name, fi, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "package.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("package.json: got %v, want no such file", err)
	}
}

func TestUnpack_Refuses(t *testing.T) {
	t.Parallel()
	list := func(source, target string) entry {
		return entry{name: nativePrefix + symlinkList, body: `[{"source":"` + source + `","target":"` + target + `"}]`}
	}
	for name, tt := range map[string]struct {
		entries []entry
		want    string
	}{
		"a name with ..":   {[]entry{{name: nativePrefix + "../../evil", body: "x"}}, "leads out"},
		"an absolute name": {[]entry{{name: nativePrefix + "/evil", body: "x"}}, "leads out"},
		"a symbolic link": {
			[]entry{{name: nativePrefix + "evil", kind: tar.TypeSymlink, link: "/"}}, "expected files and directories",
		},
		"a hard link": {
			[]entry{{name: nativePrefix + "evil", kind: tar.TypeLink, link: "/etc/passwd"}}, "expected files and directories",
		},
		"a device": {
			[]entry{{name: nativePrefix + "evil", kind: tar.TypeChar}}, "expected files and directories",
		},
		"one file twice": {
			[]entry{{name: nativePrefix + "a", body: "1"}, {name: nativePrefix + "a", body: "2"}}, "exists",
		},
		"more than maxUnpacked":   {[]entry{{name: nativePrefix + "a", size: maxUnpacked + 1}}, "holds more than"},
		"a file cut short":        {[]entry{{name: nativePrefix + "a", size: 4096}}, "EOF"},
		"a listed link with ..":   {[]entry{list("native/lib/a", "native/../../evil")}, "leads out"},
		"a link to the outside":   {[]entry{list("native/../../etc/passwd", "native/evil")}, "leads out"},
		"a damaged list of links": {[]entry{{name: nativePrefix + symlinkList, body: "["}}, symlinkList},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			err := unpackArchive(bytes.NewReader(packArchive(t, tt.entries...)), filepath.Join(base, "a", "native"))
			if !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("into a missing folder: got %v, want %v", err, fs.ErrNotExist)
			}
			err = unpackArchive(bytes.NewReader(packArchive(t, tt.entries...)), filepath.Join(base, "native"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if entries, err := os.ReadDir(base); err != nil || len(entries) != 1 {
				t.Errorf("outside the directory: got %v, %v, want nothing", entries, err)
			}
		})
	}
	if err := unpackArchive(strings.NewReader("no archive"), filepath.Join(t.TempDir(), "native")); err == nil {
		t.Error("an invalid archive: got nil, want an error")
	}
}
