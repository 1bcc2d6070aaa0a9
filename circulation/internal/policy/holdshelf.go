package policy

import (
	"encoding/json"
	"time"
)

// HoldShelfPeriod is how long a service point keeps an item for the patron who
// requested it. The zero value is none: the item waits without an end.
type HoldShelfPeriod struct{ period period }

// UnmarshalJSON reads FOLIO's {"duration":n,"intervalId":"…"}.
func (p *HoldShelfPeriod) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &p.period) }

// Until returns until when an item waits that is put on the shelf now; false when
// it waits without an end, which is also how a period without sense is taken,
// because an item that is back has to go somewhere. A period of days or more
// lasts to the end of its last day (mod-circulation, UpdateRequestQueue), in the
// time zone of now; libraries count as always open.
func (p HoldShelfPeriod) Until(now time.Time) (time.Time, bool) {
	end, err := p.period.after(now)
	if err != nil {
		return time.Time{}, false
	}
	switch p.period.interval {
	case "Minutes", "Hours":
		return end, true
	}
	return time.Date(end.Year(), end.Month(), end.Day(), 23, 59, 59, 0, end.Location()), true
}
