package events

import "time"

// SetInterval sets the pause between two turns. It is called before Run.
func (d *Deliverer) SetInterval(pause time.Duration) { d.interval = pause }

// SetLease sets how long a lease lasts, and the sending of a batch. It is called before Run.
func (d *Deliverer) SetLease(duration, sending time.Duration) {
	d.lease, d.sendTime = duration, sending
}
