//go:build !unix

package devpostgres

import (
	"errors"
	"os"
	"syscall"
)

// supported is false where users, signals and file locks work otherwise; Start then says so and does nothing.
const supported = false

const errLocked = syscall.EWOULDBLOCK

type account struct{}

func newAccount() *account { return nil }

func ownerAccount(string) (*account, error) { return nil, errors.ErrUnsupported }

func owner(string) (uid, gid uint32, err error) { return 0, 0, errors.ErrUnsupported }

func (*account) own(...string) error { return errors.ErrUnsupported }

func (*account) hint(string) string { return "" }

func serverAttr(*account) *syscall.SysProcAttr { return nil }

func tryLock(*os.File) error { return errors.ErrUnsupported }
