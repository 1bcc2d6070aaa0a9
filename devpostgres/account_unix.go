//go:build unix

package devpostgres

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// supported reports whether this system can run the launcher.
const supported = true

// errLocked is the error of tryLock if another process holds the lock.
const errLocked = syscall.EWOULDBLOCK

// account is the user of the server process if this process is root, because PostgreSQL refuses to
// run as root. A nil account means this process's user.
type account struct{ uid, gid uint32 }

// newAccount returns the account for a new cluster: that of the user postgres, else that of the
// system's user without rights, else the usual uid of the latter.
func newAccount() *account {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{superuser, "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if uerr == nil && gerr == nil && uid != 0 {
			return &account{uid: uint32(uid), gid: uint32(gid)}
		}
	}
	return &account{uid: 65534, gid: 65534}
}

// findOwner returns the account that owns the cluster in dir.
func findOwner(dir string) (*account, error) {
	uid, gid, err := readOwner(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the owner of the data directory: %w", err)
	case int(uid) == os.Geteuid() && uid != 0:
		return nil, nil
	case os.Geteuid() != 0:
		return nil, fmt.Errorf("%s belongs to uid %d, this is uid %d: use a directory of your own", dir, uid, os.Geteuid())
	case uid == 0:
		return nil, fmt.Errorf("%s belongs to root, but PostgreSQL does not run as root: give it to another user (chown -R)", dir)
	}
	return &account{uid: uid, gid: gid}, nil
}

// readOwner returns the owner of the file. It does not follow links.
func readOwner(name string) (uid, gid uint32, err error) {
	fi, err := os.Lstat(name)
	if err != nil {
		return 0, 0, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("%s: the system does not report the owner", name)
	}
	return st.Uid, st.Gid, nil
}

// giveFiles makes the account the owner of the files.
func (a *account) giveFiles(names ...string) error {
	if a == nil {
		return nil
	}
	for _, name := range names {
		if err := os.Chown(name, int(a.uid), int(a.gid)); err != nil {
			return fmt.Errorf("giving the data directory to uid %d: %w", a.uid, err)
		}
	}
	return nil
}

// explainFailure explains the two failures that depend on the account. It returns an empty text for
// others.
func (a *account) explainFailure(output string) string {
	output = strings.ToLower(output)
	switch {
	case a != nil && strings.Contains(output, "permission denied"):
		return fmt.Sprintf(" (the server runs as uid %d, which must be able to reach its binaries and its data: keep both out of root's home)", a.uid)
	case strings.Contains(output, "could not look up effective user id"):
		return " (PostgreSQL needs a user that the system knows by name: run as one that has an entry in /etc/passwd)"
	}
	return ""
}

// processAttributes makes a child run as the account, in its own process group. So Ctrl-C in a
// terminal does not reach it before its owner has finished. On Linux the child also ends with its
// parent.
func processAttributes(a *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	endWithParent(attr)
	return attr
}

// tryLock takes the file's exclusive lock without a wait. It returns errLocked if another process
// holds the lock. The system frees the lock when this process ends.
func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
