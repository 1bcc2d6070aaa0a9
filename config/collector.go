package config

import (
	"runtime/debug"

	"github.com/caarlos0/env/v10"
)

// heapGrowth is the default of GOGC: the heap grows to three times what is in use. So little
// is in use that Go's own default of 100 collects many times a second under load.
const heapGrowth = 200

// heapLimit is above what a service uses at work. Beyond it the heap grows less, so that a flood of
// requests is not multiplied by heapGrowth.
const heapLimit = 192 << 20

// SetHeapLimit makes heapLimit the process's GOMEMLIMIT, unless environ sets that.
func SetHeapLimit(environ []string) {
	if env.ToMap(environ)["GOMEMLIMIT"] == "" {
		debug.SetMemoryLimit(heapLimit)
	}
}

// SetHeapGrowth makes heapGrowth the process's GOGC, unless environ sets GOGC.
func SetHeapGrowth(environ []string) {
	if env.ToMap(environ)["GOGC"] == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
