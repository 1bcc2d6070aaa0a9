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
	// fetchTimeout bounds the installation of Chromium and the download of axe-core.
	fetchTimeout = 10 * time.Minute
	// versionTimeout bounds a program's --version.
	versionTimeout = 30 * time.Second
	// lockInterval is the time between attempts to lock the cache folder.
	lockInterval = 50 * time.Millisecond
)

// finder finds programs. Its fields describe the machine, so that tests can replace it.
type finder struct {
	system   debian.System
	given    string                 // CHROME_BIN
	folders  []string               // of Chromium outside PATH
	cacheDir func() (string, error) // the folder of downloads
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

// findChromium returns the path of a Chromium or Chrome that runs: the given one, else the
// first of PATH, the usual folders and Debian's package. Concurrent processes take turns,
// because a package is in PATH before its installation is complete.
func (f *finder) findChromium(ctx context.Context) (string, error) {
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
		return "", fmt.Errorf("waiting for another process to find Chromium: %w", err)
	}
	defer lock.Close()

	program, lerr := f.findInstalled(ctx)
	if lerr == nil {
		return program, nil
	}
	program, aerr := f.installChromium(ctx)
	if aerr == nil {
		return program, nil
	}
	return "", fmt.Errorf("no Chromium to test with: install it, name it in CHROME_BIN, or leave these tests out with BROWSER_TESTS=skip; tried:\n%w",
		errors.Join(lerr, aerr))
}

// programs are the names of browsers in PATH, the preferred one first. The headless shell takes a
// third of the processor time of the others, because it has no window to paint.
var programs = []string{
	"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
}

// findInstalled returns the first installed program that runs.
func (f *finder) findInstalled(ctx context.Context) (string, error) {
	var failed []error
	for _, name := range programs {
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

// inspect returns an error unless the program runs and is Chromium or Chrome. On Ubuntu,
// chromium-browser may be a stub that names another package.
func (f *finder) inspect(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := f.system.Run(ctx, "", nil, program, "--version")
	if err != nil {
		return err
	}
	if !strings.Contains(out, "Chrom") {
		return fmt.Errorf("%s --version is %q, want Chromium or Chrome", program, strings.TrimSpace(out))
	}
	return nil
}

// cacheDir makes and returns the folder of downloads.
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

// aptPackages are Debian's Chromium and fonts. Without a font, screenshots show boxes.
var aptPackages = []string{"chromium-headless-shell", "fonts-dejavu-core", "fonts-liberation"}

// installChromium installs Debian's Chromium and returns its path.
func (f *finder) installChromium(ctx context.Context) (string, error) {
	ierr := f.system.Install(ctx, "Chromium", aptPackages...)
	if errors.Is(ierr, debian.ErrUnable) {
		return "", ierr
	}
	program, err := f.findInstalled(ctx)
	if err != nil {
		return "", errors.Join(err, ierr)
	}
	return program, nil
}
