package admission

import (
	"math"
	"time"
)

// remembered is how fast the past of a rate fades: an event so long ago counts for 1/e.
const remembered = 2 * time.Second

// rate estimates how many places become free in a second while there is demand for all of them. It
// is measured in such times only, because idle places say nothing. It takes the assumed rate for
// the part of the last seconds without demand, so a start and a burst after an idle minute begin
// with that one.
type rate struct {
	assumed float64 // places in a second

	updated time.Time // zero is long ago
	demand  bool      // since updated
	freed   float64   // places, in the last seconds
	known   float64   // the part of the last seconds with demand, 0 to 1
}

// update moves the rate on to now. From now on there is demand or not.
func (r *rate) update(now time.Time, demand bool) {
	kept := math.Exp(-now.Sub(r.updated).Seconds() / remembered.Seconds())
	r.freed *= kept
	r.known *= kept
	if r.demand {
		r.known += 1 - kept
	}
	r.updated, r.demand = now, demand
}

// countFreed counts a place that becomes free now.
func (r *rate) countFreed(now time.Time) {
	r.update(now, r.demand)
	if r.demand {
		r.freed++
	}
}

// placesIn returns how many places become free within d from now.
func (r *rate) placesIn(d time.Duration, now time.Time) int {
	r.update(now, r.demand)
	return int((r.freed/remembered.Seconds() + r.assumed*(1-r.known)) * d.Seconds())
}
