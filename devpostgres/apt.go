package devpostgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// apt installs Debian's package of PostgreSQL. That changes the machine, so it is done as root only and said aloud.
func (f *finder) apt(ctx context.Context, major int) (binaries, error) {
	if _, err := os.Stat(f.debian); err != nil || f.goos != "linux" {
		return binaries{}, errors.New("not installed with apt-get: this is neither Debian nor Ubuntu")
	}
	if !f.root {
		return binaries{}, errors.New("not installed with apt-get: that takes root")
	}
	aptGet, err := f.lookPath("apt-get")
	if err != nil {
		return binaries{}, fmt.Errorf("not installed with apt-get: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	env := append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	name := "postgresql"
	if major != 0 {
		name += "-" + strconv.Itoa(major)
	}
	f.log.Warn("installing PostgreSQL on this machine", "command", "apt-get install "+name)

	// Lists may be stale and still do; then the installation tells.
	_, uerr := f.run(ctx, "/", env, aptGet, "update")
	// The package also sets up a cluster of Debian's own and starts it where it can. Neither is used here, and where
	// that fails apt-get fails though the programs are in place: they decide.
	_, ierr := f.run(ctx, "/", env, aptGet, "install", "-y", "--no-install-recommends", name)
	b, err := f.local(ctx, major)
	if err != nil {
		return binaries{}, errors.Join(err, uerr, ierr)
	}
	return b, nil
}

// advice returns the line that installs PostgreSQL on this system; major 0 means any version.
func (f *finder) advice(major int) string {
	version := ""
	if major != 0 {
		version = strconv.Itoa(major)
	}
	if f.goos == "darwin" {
		if version == "" {
			version = "17"
		}
		return "install it (brew install postgresql@" + version + ")"
	}
	if _, err := os.Stat(f.debian); err == nil {
		if version != "" {
			version = "-" + version
		}
		return "install it (as root: apt-get install postgresql" + version + ")"
	}
	return "install the package postgresql" + version + " of this system"
}
