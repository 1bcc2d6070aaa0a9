package devpostgres

import "syscall"

// endWithParent lets the kernel ask the child for a fast shutdown (SIGINT) when its parent thread ends, so that a
// launcher killed with SIGKILL leaves no server behind.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }

// ctype is the character classification of new clusters, so that lower() knows
// more than ASCII. glibc brings it along.
const ctype = "C.UTF-8"
