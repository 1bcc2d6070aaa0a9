//go:build unix && !linux

package devpostgres

import "syscall"

// endWithParent does nothing, because only Linux can signal a child when its parent ends.
func endWithParent(*syscall.SysProcAttr) {}

// ctype is the character classification of new clusters. All systems have C.
const ctype = "C"
