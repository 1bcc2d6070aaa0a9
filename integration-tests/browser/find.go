package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"checkoutlock/integration-tests/debian"
)

const (
	// fetchTimeout bounds the installation of Chromium and the download of axe.
	fetchTimeout = 10 * time.Minute
	// versionTimeout bounds the question for a program's version.
	versionTimeout = 30 * time.Second
	// lockInterval is how often a process looks whether it is its turn.
	lockInterval = 50 * time.Millisecond
)

// finder looks for programs. Its fields are what it sees of the machine, so that
// tests can give it another one.
type finder struct {
	system   debian.System
	given    string                 // CHROME_BIN
	folders  []string               // where Chromium lies outside PATH
	cacheDir func() (string, error) // where downloads are kept
}

func newFinder() *finder {
	return &finder{
		system: debian.This(), given: os.Getenv("CHROME_BIN"),
		folders: []string{
			"/Applications/Chromium.app/Contents/MacOS/Chromium",
			"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
		},
		cacheDir: cacheDir,
	}
}

// chromium returns the path of a Chromium or Chrome that runs: the one that is
// given and no other, else the first of PATH, the usual folders and Debian's
// package. Processes that look at once take turns, because a package that another
// one is installing is in PATH before it is whole.
func (f *finder) chromium(ctx context.Context) (string, error) {
	if f.given != "" {
		if err := f.inspect(ctx, f.given); err != nil {
			return "", fmt.Errorf("CHROME_BIN: %w", err)
		}
		return f.given, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	cache, err := f.cacheDir()
	if err != nil {
		return "", err
	}
	lock := flock.New(filepath.Join(cache, "chromium.lock"))
	if _, err := lock.TryLockContext(ctx, lockInterval); err != nil {
		return "", fmt.Errorf("waiting for another process that looks for Chromium: %w", err)
	}
	defer lock.Close()

	program, lerr := f.local(ctx)
	if lerr == nil {
		return program, nil
	}
	program, aerr := f.apt(ctx)
	if aerr == nil {
		return program, nil
	}
	return "", fmt.Errorf("no Chromium to test with: install it, name it in CHROME_BIN, or leave these tests out with BROWSER_TESTS=skip; tried:\n%w",
		errors.Join(lerr, aerr))
}

// local looks for what is installed.
func (f *finder) local(ctx context.Context) (string, error) {
	var failed []error
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		path, err := f.system.LookPath(name)
		if err != nil {
			continue
		}
		if err = f.inspect(ctx, path); err == nil {
			return path, nil
		}
		failed = append(failed, err)
	}
	for _, path := range f.folders {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		err := f.inspect(ctx, path)
		if err == nil {
			return path, nil
		}
		failed = append(failed, err)
	}
	if len(failed) == 0 {
		return "", errors.New("no Chromium and no Chrome in PATH and the usual folders")
	}
	return "", errors.Join(failed...)
}

// inspect tells whether the program runs and is what it should be. Ubuntu, for
// one, has a chromium-browser that only says how to install another package.
func (f *finder) inspect(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := f.system.Run(ctx, "", nil, program, "--version")
	if err != nil {
		return err
	}
	if !strings.Contains(out, "Chrom") {
		return fmt.Errorf("%s does not say that it is Chromium or Chrome but %q", program, strings.TrimSpace(out))
	}
	return nil
}

// cacheDir makes and returns the folder that downloads are kept in.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("choosing a folder for downloads: %w", err)
	}
	dir = filepath.Join(dir, "checkoutlock")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder for downloads: %w", err)
	}
	return dir, nil
}

// aptPackages are what is installed. Debian's Chromium comes without any font, and
// without one a screenshot shows boxes.
var aptPackages = []string{"chromium", "fonts-dejavu-core", "fonts-liberation"}

// apt installs Debian's Chromium and returns its path.
func (f *finder) apt(ctx context.Context) (string, error) {
	ierr := f.system.Install(ctx, "Chromium", aptPackages...)
	if errors.Is(ierr, debian.ErrUnable) {
		return "", ierr
	}
	program, err := f.local(ctx)
	if err != nil {
		return "", errors.Join(err, ierr)
	}
	return program, nil
}
