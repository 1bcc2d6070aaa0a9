package devpostgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// DefaultDataDir returns the permanent data directory of the program called name, in the user's
// cache folder. For users without a home it is below /var/tmp/<name>-<uid>, and also for root,
// because the server's user cannot enter root's home. The parent folder is made. It must belong to
// this user, and others must not be able to write to it.
func DefaultDataDir(name string) (string, error) {
	dir, err := makeCacheDir(name)
	if err != nil {
		return "", fmt.Errorf("choosing the data directory: %w", err)
	}
	return filepath.Join(dir, "postgresql"), nil
}

// makeCacheDir makes and returns this user's cache folder of the program called name.
func makeCacheDir(name string) (string, error) {
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
	return makeOwnDir(filepath.Join("/var/tmp", name+"-"+strconv.Itoa(uid)))
}

// makeOwnDir makes dir in a folder where all users may write. It refuses a directory that another
// user has made.
func makeOwnDir(dir string) (string, error) {
	err := os.Mkdir(dir, 0o755) //nolint:gosec // the server's user needs access
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // independent of the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	uid, _, err := readOwner(dir)
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

// scratch is a throw-away directory. Its owner holds a lock on a file in it. If the lock is free,
// its launcher has died, and the next launcher removes the directory.
type scratch struct {
	dir  string
	lock *os.File
}

// diskRoot returns the folder for throw-away directories on disk.
func diskRoot() string {
	if os.Geteuid() == 0 {
		return "/tmp" // the server's user may not be able to enter TMPDIR
	}
	return os.TempDir()
}

// newScratch makes a throw-away directory in root that all users can enter, and removes those of
// dead launchers.
func newScratch(root string) (_ *scratch, err error) {
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
	if err := os.Chmod(made, 0o711); err != nil { //nolint:gosec // the server's user needs access
		return nil, err
	}
	if s.lock, err = os.OpenFile(filepath.Join(made, scratchLock), os.O_CREATE|os.O_RDWR, 0o600); err != nil { //nolint:gosec // a directory just made
		return nil, err
	}
	if err := tryLock(s.lock); err != nil {
		return nil, err
	}
	// sweepScratch reads only names of this form, so it never finds a directory without a lock.
	named := filepath.Join(root, scratchName+filepath.Base(made)[len(scratchNew):])
	if err := os.Rename(made, named); err != nil {
		return nil, err
	}
	s.dir = named
	return s, nil
}

// dataDir returns the directory of the cluster.
func (s *scratch) dataDir() string { return filepath.Join(s.dir, "data") }

// remove deletes the directory and then frees the lock, so that no other process deletes it
// meanwhile.
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

// sweepScratch removes this user's throw-away directories of dead launchers in root. It ignores
// failures, because the next start tries again.
func sweepScratch(root string) {
	dirs, err := filepath.Glob(filepath.Join(root, scratchName+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		if uid, _, err := readOwner(dir); err != nil || int(uid) != os.Geteuid() {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, scratchLock), os.O_RDWR, 0) //nolint:gosec // a directory of this user
		if err != nil {
			continue
		}
		if tryLock(lock) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
