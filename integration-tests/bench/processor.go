package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of processor times in /proc, which is 10 ms on every Linux that Go
// supports (USER_HZ).
const tick = 10 * time.Millisecond

// Fields of /proc/PID/stat, counted from the one behind the program's name.
const (
	statParent       = 1
	statUser         = 11
	statSystem       = 12
	statDeadChildren = 13 // user, then system
)

// readStat returns the fields of /proc/PID/stat behind the program's name.
func readStat(pid int) ([]string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	var fields []string
	for _, field := range bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:]) {
		fields = append(fields, string(field))
	}
	return fields, nil
}

// processorTime returns the processor time of a process, and of its children that ended.
func processorTime(pid int, withDeadChildren bool) (time.Duration, error) {
	fields, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	counted := []string{fields[statUser], fields[statSystem]}
	if withDeadChildren {
		counted = append(counted, fields[statDeadChildren], fields[statDeadChildren+1])
	}
	var sum time.Duration
	for _, field := range counted {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}

// treeProcessorTime returns the processor time of a process and all its children.
func treeProcessorTime(parent int) (time.Duration, error) {
	sum, err := processorTime(parent, true)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // no process
		}
		fields, err := readStat(pid)
		if err != nil || fields[statParent] != strconv.Itoa(parent) {
			continue // it ended meanwhile, or is another's child
		}
		if used, err := processorTime(pid, false); err == nil {
			sum += used
		}
	}
	return sum, nil
}

// ownProcessorTime returns the processor time of this process, which is the client.
func ownProcessorTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
