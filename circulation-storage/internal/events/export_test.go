package events

import "time"

// SetInterval sets the pause between two turns. It is called before Run.
func (d *Deliverer) SetInterval(pause time.Duration) { d.interval = pause }
