package devpostgres

import "syscall"

const (
	memoryFolder = "/dev/shm"
	tmpfsMagic   = 0x01021994
	// memoryNeeded is more than all tests have written at once, with the write-ahead log.
	memoryNeeded = 4 << 30
)

// memoryRoot returns a folder for throw-away directories in memory, "" if there is none with
// enough space. On a disk, tests wait for each commit, and for the many files that schemas are.
func memoryRoot() string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(memoryFolder, &s); err != nil || s.Type != tmpfsMagic {
		return ""
	}
	if s.Bavail*uint64(s.Bsize) < memoryNeeded { //nolint:gosec // a block has a positive size
		return ""
	}
	return memoryFolder
}
