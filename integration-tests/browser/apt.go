package browser

import (
	"context"
	"errors"

	"checkoutlock/integration-tests/debian"
)

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
