//go:build unix

package browser

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the file's exclusive lock, or fails at once with errLocked.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
