package devpostgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// installPackage installs Debian's package of PostgreSQL, as root only. It logs a warning, because
// it changes the machine.
func (f *finder) installPackage(ctx context.Context, major int) (binaries, error) {
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
	f.log.Warn("installing PostgreSQL on this host", "command", "apt-get install "+name)

	// The installation may succeed with stale lists, so only its result counts.
	_, uerr := f.run(ctx, "/", env, aptGet, "update")
	// The package also makes and starts a cluster of its own, which is not used here. If that
	// fails, apt-get fails although the programs are installed. So the search for them decides.
	_, ierr := f.run(ctx, "/", env, aptGet, "install", "-y", "--no-install-recommends", name)
	b, err := f.findInstalled(ctx, major)
	if err != nil {
		return binaries{}, errors.Join(err, uerr, ierr)
	}
	return b, nil
}

// describeInstallation returns how to install PostgreSQL on this system. Major 0 means any version.
func (f *finder) describeInstallation(major int) string {
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
