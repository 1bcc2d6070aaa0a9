package devpostgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// DefaultDataDir returns the data directory to keep between runs for the program called name: a folder in the user's
// cache folder. For root, whose home the server's user cannot enter, and for users without a home it is below
// /var/tmp/<name>-<uid>. The folder above the data directory is made; it is an error when it belongs to somebody
// else or when others may write to it.
func DefaultDataDir(name string) (string, error) {
	dir, err := cacheDir(name)
	if err != nil {
		return "", fmt.Errorf("choosing the data directory: %w", err)
	}
	return filepath.Join(dir, "postgresql"), nil
}

// cacheDir makes and returns the folder that this user's programs called name keep things in.
func cacheDir(name string) (string, error) {
	if name == "." || filepath.Base(name) != name || !filepath.IsLocal(name) {
		return "", fmt.Errorf("%q is no plain file name", name)
	}
	uid := os.Geteuid()
	if uid != 0 {
		if cache, err := os.UserCacheDir(); err == nil {
			dir := filepath.Join(cache, name)
			return dir, os.MkdirAll(dir, 0o700)
		}
	}
	return ownDir(filepath.Join("/var/tmp", name+"-"+strconv.Itoa(uid)))
}

// ownDir makes dir in a folder where anybody may make things, and refuses one that somebody else has put there.
func ownDir(dir string) (string, error) {
	err := os.Mkdir(dir, 0o755) //nolint:gosec // the server's user must get through
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // whatever the umask is
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	uid, _, err := owner(dir)
	if err != nil {
		return "", err
	}
	const othersWrite = 0o022
	if !fi.IsDir() || int(uid) != os.Geteuid() || fi.Mode().Perm()&othersWrite != 0 {
		return "", fmt.Errorf("%s is not a directory that only uid %d may write to: remove it", dir, os.Geteuid())
	}
	return dir, nil
}

const (
	scratchNew  = "checkoutlock-new-" // being made, not yet locked
	scratchName = "checkoutlock-pg-"
	scratchLock = "owner.lock"
)

// scratch is a throw-away directory. Its owner holds a lock on a file in it; a directory whose lock is free was left
// by a launcher that died, and the next one removes it.
type scratch struct {
	dir  string
	lock *os.File
}

// newScratch makes a throw-away directory that any user can pass through, and clears what dead launchers left.
func newScratch() (_ *scratch, err error) {
	root := os.TempDir()
	if os.Geteuid() == 0 {
		root = "/tmp" // TMPDIR may lie where the server's user cannot go
	}
	sweepScratch(root)

	made, err := os.MkdirTemp(root, scratchNew)
	if err != nil {
		return nil, fmt.Errorf("making a throw-away directory: %w", err)
	}
	s := &scratch{dir: made}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("making a throw-away directory: %w", err), s.remove())
		}
	}()
	if err := os.Chmod(made, 0o711); err != nil { //nolint:gosec // the server's user must get through
		return nil, err
	}
	if s.lock, err = os.OpenFile(filepath.Join(made, scratchLock), os.O_CREATE|os.O_RDWR, 0o600); err != nil { //nolint:gosec // a directory just made
		return nil, err
	}
	if err := tryLock(s.lock); err != nil {
		return nil, err
	}
	// Only now does it get a name that a sweep looks at.
	named := filepath.Join(root, scratchName+filepath.Base(made)[len(scratchNew):])
	if err := os.Rename(made, named); err != nil {
		return nil, err
	}
	s.dir = named
	return s, nil
}

// dataDir returns where the cluster goes.
func (s *scratch) dataDir() string { return filepath.Join(s.dir, "data") }

// remove deletes the directory. The lock goes last, so that nobody else removes it meanwhile.
func (s *scratch) remove() error {
	if s == nil {
		return nil
	}
	err := os.RemoveAll(s.dir)
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// sweepScratch removes this user's throw-away directories in root whose launcher is gone. It is a courtesy: what
// fails is left to the next start.
func sweepScratch(root string) {
	dirs, err := filepath.Glob(filepath.Join(root, scratchName+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		if uid, _, err := owner(dir); err != nil || int(uid) != os.Geteuid() {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, scratchLock), os.O_RDWR, 0) //nolint:gosec // our own directory
		if err != nil {
			continue
		}
		if tryLock(lock) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
