package events

import "time"

// SetInterval sets the pause between two turns. It is called before Run.
func (d *Deliverer) SetInterval(pause time.Duration) { d.interval = pause }

// SetLease sets how long a lease lasts. It is called before Run.
func (d *Deliverer) SetLease(duration time.Duration) { d.lease = duration }
