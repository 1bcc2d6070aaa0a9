package testserver

import (
	"fmt"
	"syscall"
)

// mountMemory mounts a file system of that many bytes, which is kept in memory.
func mountMemory(folder string, size int) error {
	return syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", size))
}

// unmount also ends a mount whose files are still open.
func unmount(folder string) error { return syscall.Unmount(folder, syscall.MNT_DETACH) }
