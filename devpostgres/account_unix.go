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

// supported tells whether this system can run the launcher at all.
const supported = true

// errLocked is what tryLock returns for a lock that another process holds.
const errLocked = syscall.EWOULDBLOCK

// account is the user a server runs as when this process is root, since PostgreSQL refuses to run as root. A nil
// account means this process's own user.
type account struct{ uid, gid uint32 }

// newAccount returns the account for a new cluster: postgres where it exists, else nobody, else the number that
// nobody usually has.
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

// ownerAccount returns the account that owns the cluster in dir.
func ownerAccount(dir string) (*account, error) {
	uid, gid, err := owner(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the owner of the data directory: %w", err)
	case int(uid) == os.Geteuid() && uid != 0:
		return nil, nil
	case os.Geteuid() != 0:
		return nil, fmt.Errorf("%s belongs to uid %d, this is uid %d: use a directory of your own", dir, uid, os.Geteuid())
	case uid == 0:
		return nil, fmt.Errorf("%s belongs to root, as whom PostgreSQL does not run: give it to another user (chown -R)", dir)
	}
	return &account{uid: uid, gid: gid}, nil
}

// owner returns who owns the file, without following a link.
func owner(name string) (uid, gid uint32, err error) {
	fi, err := os.Lstat(name)
	if err != nil {
		return 0, 0, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("%s: the system does not tell the owner", name)
	}
	return st.Uid, st.Gid, nil
}

// own gives the files to the account.
func (a *account) own(names ...string) error {
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

// hint explains the two failures that depend on the account, and is empty for any other.
func (a *account) hint(output string) string {
	output = strings.ToLower(output)
	switch {
	case a != nil && strings.Contains(output, "permission denied"):
		return fmt.Sprintf(" (the server runs as uid %d, which must be able to reach its binaries and its data: keep both out of root's home)", a.uid)
	case strings.Contains(output, "could not look up effective user id"):
		return " (PostgreSQL needs a user that the system knows by name: run as one that has an entry in /etc/passwd)"
	}
	return ""
}

// serverAttr makes a child run as the account, in a process group of its own so that Ctrl-C in a terminal does not
// reach it before its owner has finished, and on Linux end with its parent.
func serverAttr(a *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	endWithParent(attr)
	return attr
}

// tryLock takes the file's exclusive lock, which the system frees when this process ends. It fails at once when
// somebody else holds it, with errLocked.
func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
