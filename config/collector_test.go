package config_test

import (
	"runtime/debug"
	"testing"

	"checkoutlock/config"
)

//nolint:paralleltest // it changes the process
func TestSetHeapGrowth(t *testing.T) {
	const before = 123
	old := debug.SetGCPercent(before)
	defer debug.SetGCPercent(old)
	config.SetHeapGrowth([]string{"GOGC=50"}) // Go has read it at the start
	if got := debug.SetGCPercent(before); got != before {
		t.Errorf("with GOGC in the environment it became %d, want %d as it was", got, before)
	}
	config.SetHeapGrowth([]string{"GOGC="})
	if got := debug.SetGCPercent(before); got != 200 {
		t.Errorf("without GOGC it is %d, want 200", got)
	}
}

//nolint:paralleltest // it changes the process
func TestSetHeapLimit(t *testing.T) {
	const before = 1 << 40
	old := debug.SetMemoryLimit(before)
	defer debug.SetMemoryLimit(old)
	config.SetHeapLimit([]string{"GOMEMLIMIT=1GiB"}) // Go has read it at the start
	if got := debug.SetMemoryLimit(before); got != before {
		t.Errorf("with GOMEMLIMIT in the environment it became %d, want %d as it was", got, before)
	}
	config.SetHeapLimit([]string{"GOMEMLIMIT="})
	if got := debug.SetMemoryLimit(before); got != 192<<20 {
		t.Errorf("without GOMEMLIMIT it is %d, want %d", got, 192<<20)
	}
}
