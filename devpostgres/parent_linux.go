package devpostgres

import "syscall"

// endWithParent makes the kernel send SIGINT, a fast shutdown, to the child when its parent thread
// ends. So no server outlives a launcher killed with SIGKILL.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }

// ctype is the character classification of new clusters. With it, lower() supports more than ASCII.
// It is part of glibc.
const ctype = "C.UTF-8"
