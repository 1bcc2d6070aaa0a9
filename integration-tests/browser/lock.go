package browser

import (
	"context"
	"errors"
	"os"
	"time"
)

// errLocked is what tryLock returns for a lock that another process holds.
var errLocked = errors.New("locked by another process")

// waitLock waits for the exclusive lock of the file, and makes it when it is
// missing. Closing the file frees the lock, and so does the end of the process.
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
