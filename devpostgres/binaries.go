package devpostgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// minMajor is the oldest version the services support.
const minMajor = 14

// binaries are the programs of one PostgreSQL installation.
type binaries struct {
	dir          string
	version      string // as the server prints it, such as "15.18"
	major, minor int
}

func (b binaries) postgres() string { return filepath.Join(b.dir, "postgres") }
func (b binaries) initdb() string   { return filepath.Join(b.dir, "initdb") }

// finder finds binaries. Its fields describe the machine, so that tests can replace it.
type finder struct {
	log      *slog.Logger
	goos     string
	goarch   string
	root     bool
	folders  []string                     // patterns of the usual folders
	lookPath func(string) (string, error) // finds a program in PATH
	cacheDir func() (string, error)       // the folder of downloads
	debian   string                       // the file that marks Debian and its descendants
	run      func(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error)
}

func newFinder(log *slog.Logger) *finder {
	return &finder{
		log: log, goos: runtime.GOOS, goarch: runtime.GOARCH, root: os.Geteuid() == 0,
		folders: []string{
			"/usr/lib/postgresql/*/bin",                                           // Debian, Ubuntu
			"/usr/pgsql-*/bin",                                                    // Red Hat, packages of postgresql.org
			"/usr/libexec/postgresql*",                                            // Alpine
			"/usr/local/pgsql/bin",                                                // built from source
			"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin", // Homebrew
			"/opt/local/lib/postgresql*/bin", // MacPorts
			"/Library/PostgreSQL/*/bin", "/Applications/Postgres.app/Contents/Versions/*/bin",
		},
		lookPath: exec.LookPath,
		cacheDir: func() (string, error) { return makeCacheDir("checkoutlock") },
		debian:   "/etc/debian_version",
		run:      runProgram,
	}
}

// findBinaries returns the binaries in binDir if it is given. Otherwise it searches PATH, the usual
// folders with the newest version first, the npm package and the system's package. If major is not
// 0, it accepts only that version.
func (f *finder) findBinaries(ctx context.Context, binDir string, major int) (binaries, error) {
	if binDir != "" {
		b, err := f.inspect(ctx, binDir)
		if err == nil {
			err = checkVersion(b, major)
		}
		if err != nil {
			return binaries{}, fmt.Errorf("the given folder of PostgreSQL programs: %w", err)
		}
		return b, nil
	}
	var failed []error
	for _, step := range []func(context.Context, int) (binaries, error){f.findInstalled, f.loadPackage, f.installPackage} {
		b, err := step(ctx, major)
		if err == nil {
			f.log.Debug("PostgreSQL found", "version", b.version, "dir", b.dir)
			return b, nil
		}
		if ctx.Err() != nil {
			return binaries{}, err
		}
		failed = append(failed, err)
	}
	return binaries{}, fmt.Errorf("no PostgreSQL to run: %s, or name its folder in PG_BIN, or name a running server in DATABASE_URL; tried:\n%w",
		f.describeInstallation(major), errors.Join(failed...))
}

// findInstalled returns installed binaries.
func (f *finder) findInstalled(ctx context.Context, major int) (binaries, error) {
	var failed []error
	try := func(dir string) (binaries, bool) {
		b, err := f.inspect(ctx, dir)
		if err == nil {
			err = checkVersion(b, major)
		}
		if err != nil {
			failed = append(failed, err)
		}
		return b, err == nil
	}
	for _, name := range []string{"postgres", "initdb"} {
		path, err := f.lookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			failed = append(failed, err)
			continue
		}
		if b, ok := try(filepath.Dir(path)); ok {
			return b, nil
		}
	}
	var found []binaries
	for _, pattern := range f.folders {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return binaries{}, fmt.Errorf("folder pattern %s: %w", pattern, err)
		}
		for _, dir := range dirs {
			if b, ok := try(dir); ok {
				found = append(found, b)
			}
		}
	}
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b binaries) int {
			return cmp.Or(cmp.Compare(a.major, b.major), cmp.Compare(a.minor, b.minor))
		}), nil
	}
	if len(failed) > 0 {
		return binaries{}, errors.Join(failed...)
	}
	return binaries{}, errors.New("no binaries in PATH and the usual folders")
}

// inspect reads the version of the server in dir. It requires postgres and initdb, because PATH may
// have clients only, and some packages split the two.
func (f *finder) inspect(ctx context.Context, dir string) (binaries, error) {
	b := binaries{dir: dir}
	for _, name := range []string{b.postgres(), b.initdb()} {
		fi, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return b, fmt.Errorf("%s is missing", name)
		}
		if err != nil {
			return b, err
		}
		if fi.IsDir() || fi.Mode().Perm()&0o111 == 0 {
			return b, fmt.Errorf("%s is no program", name)
		}
	}
	out, err := f.run(ctx, "/", serverEnv(), b.postgres(), "--version")
	if err != nil {
		return b, err
	}
	b.version, b.major, b.minor, err = parseVersion(string(out))
	return b, err
}

// parseVersion reads the output of "postgres --version", such as "postgres (PostgreSQL) 15.18
// (Debian 15.18-0+deb12u1)" and "postgres (PostgreSQL) 19beta1". A version without a minor number
// has minor 0.
func parseVersion(out string) (version string, major, minor int, err error) {
	_, rest, ok := strings.Cut(out, "(PostgreSQL) ")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return "", 0, 0, fmt.Errorf("%q names no version of PostgreSQL", strings.TrimSpace(out))
	}
	version = fields[0]
	head, tail, _ := strings.Cut(version, ".")
	if major, err = strconv.Atoi(leadingDigits(head)); err != nil {
		return "", 0, 0, fmt.Errorf("%q names no version of PostgreSQL", strings.TrimSpace(out))
	}
	minor, _ = strconv.Atoi(leadingDigits(tail)) // none: 0
	return version, major, minor, nil
}

func leadingDigits(s string) string {
	for i, r := range s {
		if r < '0' || r > '9' {
			return s[:i]
		}
	}
	return s
}

// checkVersion returns an error if the binaries are too old or cannot serve a cluster of the major
// version. 0 means a new cluster.
func checkVersion(b binaries, major int) error {
	switch {
	case major != 0 && b.major != major:
		return fmt.Errorf("%s is PostgreSQL %s, which does not read data of %d", b.dir, b.version, major)
	case b.major < minMajor:
		return fmt.Errorf("%s is PostgreSQL %s, older than %d", b.dir, b.version, minMajor)
	}
	return nil
}

// runProgram runs a program to its end and returns its standard output. The error contains its
// standard error.
func runProgram(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // names and arguments are ours
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return out, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
