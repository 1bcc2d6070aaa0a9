package staff

import (
	"cmp"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
)

// What waits on the page Locks now: under each lock the check-outs that wait for it, and the slowest lately.

// lockWaits is what the page shows about waits.
type lockWaits struct {
	byPatron map[string][]waitRow
	Slowest  []waitRow
}

// waitRow is a check-out that waits, or that waited.
type waitRow struct {
	RequestID, Instance string
	Machine             string        // its service point, and what names the machine
	Began               string        // RFC 3339, of one that waits
	Ended               string        // of one that waited
	Waited              time.Duration // of one that waited
	Outcome             outcome       // of one that waited
}

// listWaits reads the waits. Without the permission for past check-outs it leaves the slowest out.
func (p *pages) listWaits(v *visit) (lockWaits, error) {
	found, err := p.admin.Waits(v.ctx())
	if err != nil {
		return lockWaits{}, err
	}
	waits := lockWaits{byPatron: map[string][]waitRow{}}
	name := v.nameMachines(found)
	for _, w := range found.Waiting {
		waits.byPatron[w.UserID] = append(waits.byPatron[w.UserID], waitRow{
			RequestID: w.RequestID, Machine: name(w.ServicePointID, w.Machine), Instance: w.Instance,
			// In whole seconds, so that the time stays as it is from one look to the next.
			Began: time.Now().Add(-time.Duration(w.WaitedMs) * time.Millisecond).Round(time.Second).Format(time.RFC3339),
		})
	}
	if v.may(admin.MaySeeCheckOuts) {
		for _, e := range found.Slowest {
			waits.Slowest = append(waits.Slowest, waitRow{
				RequestID: e.RequestID, Machine: name(e.ServicePointID, e.Machine), Instance: e.Instance, Ended: e.Date,
				Waited: time.Duration(*e.WaitMs) * time.Millisecond, Outcome: findOutcome(e.Outcome),
			})
		}
	}
	return waits, nil
}

// nameMachines returns the name of a machine at a service point of the waits. A service point without a
// name has its id.
func (v *visit) nameMachines(found schemas.LockWaits) func(point, machine string) string {
	var points []schemas.PastCheckOut
	for _, w := range found.Waiting {
		points = append(points, schemas.PastCheckOut{ServicePointID: w.ServicePointID})
	}
	for _, e := range found.Slowest {
		points = append(points, schemas.PastCheckOut{ServicePointID: e.ServicePointID})
	}
	var names map[string]string
	if len(points) > 0 {
		names = v.pages.admin.NamePast(v.ctx(), points, false).ServicePoints
	}
	return func(point, machine string) string {
		place := cmp.Or(names[point], point)
		if place == "" || machine == "" {
			return place + machine
		}
		return place + " (" + machine + ")"
	}
}
