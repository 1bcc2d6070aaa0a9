package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// aptPackages are what is installed. Debian's Chromium comes without any font, and
// without one a screenshot shows boxes.
var aptPackages = []string{"chromium", "fonts-dejavu-core", "fonts-liberation"}

// apt installs Debian's Chromium. That changes the machine, so it is done as root
// only and said aloud.
func (f *finder) apt(ctx context.Context) (string, error) {
	if _, err := os.Stat(f.debian); err != nil || f.goos != "linux" {
		return "", errors.New("not installed with apt-get: this is neither Debian nor Ubuntu")
	}
	if !f.root {
		return "", errors.New("not installed with apt-get: that takes root")
	}
	aptGet, err := f.lookPath("apt-get")
	if err != nil {
		return "", fmt.Errorf("not installed with apt-get: %w", err)
	}
	install := append([]string{"install", "-y", "--no-install-recommends"}, aptPackages...)
	f.say("no Chromium for the tests: installing it on this machine with apt-get " + strings.Join(install, " "))

	// Lists may be stale and still do; then the installation tells.
	uerr := f.aptGet(ctx, aptGet, "update")
	ierr := f.aptGet(ctx, aptGet, install...)
	program, err := f.local(ctx)
	if err != nil {
		return "", errors.Join(err, uerr, ierr)
	}
	return program, nil
}

// aptGet runs apt-get, again and again while another one is at work.
func (f *finder) aptGet(ctx context.Context, program string, args ...string) error {
	env := []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"} // its messages are looked at
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		_, err := f.run(ctx, "/", env, program, args...)
		if err == nil || !strings.Contains(err.Error(), "Could not get lock") {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
