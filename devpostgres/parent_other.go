//go:build unix && !linux

package devpostgres

import "syscall"

// endWithParent does nothing: only Linux tells a child of its parent's death.
func endWithParent(*syscall.SysProcAttr) {}

// ctype is the character classification of new clusters; C is there everywhere.
const ctype = "C"
