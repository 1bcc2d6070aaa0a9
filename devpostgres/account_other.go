//go:build !unix

package devpostgres

import (
	"errors"
	"os"
	"syscall"
)

// supported is false on systems with other users, signals and file locks. Start fails there.
const supported = false

const errLocked = syscall.EWOULDBLOCK

const ctype = "C"

type account struct{}

func newAccount() *account { return nil }

func findOwner(string) (*account, error) { return nil, errors.ErrUnsupported }

func readOwner(string) (uid, gid uint32, err error) { return 0, 0, errors.ErrUnsupported }

func (*account) giveFiles(...string) error { return errors.ErrUnsupported }

func (*account) explainFailure(string) string { return "" }

func processAttributes(*account) *syscall.SysProcAttr { return nil }

func tryLock(*os.File) error { return errors.ErrUnsupported }
