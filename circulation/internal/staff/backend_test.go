package staff_test

import (
	"context"
	"sync"

	"checkoutlock/circulation/internal/admin"
	records "checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/circulation/internal/staff"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	heldID     = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	outdatedID = "6cf5ab4b-7a1c-4f1c-a9d2-02a7a2a3a111"
	annID      = "93f1a0c2-68a5-4c8a-9bd5-3f1f0f0f1234"
	benID      = "b2f3d5d0-9a53-44c5-8e0e-9a5a3a5a5678"
	newID      = "01890a5d-ac96-774b-bcce-b302099a8057" // of version 7, which FOLIO's lock does not take
)

// held is a lock of Ann, outdated one of Ben.
func held() schemas.CheckoutLock {
	return schemas.CheckoutLock{
		ID: heldID, UserID: annID, TTLMs: 3000, AgeMs: 500, AcquisitionID: "a5b1c7c8-0d0e-4f3a-9f57-4f5a3b1c2d3e",
		OkapiRequestID: "req-17/circulation", Holder: "circulation-1",
	}
}

func outdated() schemas.CheckoutLock {
	return schemas.CheckoutLock{ID: outdatedID, UserID: benID, TTLMs: 3000, AgeMs: 75_000, Outdated: true}
}

// backend is an Admin of locks. The tests do not use the methods that it lacks.
type backend struct {
	staff.Admin

	mu      sync.Mutex
	view    settings.View
	figures schemas.Figures
	locks   []schemas.CheckoutLock
	waits   schemas.LockWaits
	total   int   // 0 is as many as there are
	err     error // of a list
	lost    error // of the search for a barcode
	refusal error // of a release

	asked    admin.LockFilter
	lists    int
	lookups  int // of patrons by their ids
	searches int // for a patron by barcode
	released []string
	by       okapi.Call
}

// change runs f under the lock, to change or read the desk while pages stream from it.
func (d *backend) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *backend) Settings(context.Context) (settings.View, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.view, nil
}

func (d *backend) Figures(context.Context, schemas.FigureFilter) (schemas.Figures, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.figures, d.err
}

func (d *backend) LockChanges(context.Context, string, int, int) (schemas.LockChanges, error) {
	return schemas.LockChanges{}, nil
}

func (d *backend) Locks(_ context.Context, f admin.LockFilter) (schemas.CheckoutLocks, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = f
	d.lists++
	if d.err != nil {
		return schemas.CheckoutLocks{}, d.err
	}
	return schemas.CheckoutLocks{CheckoutLocks: d.locks, TotalRecords: max(d.total, len(d.locks))}, nil
}

func (d *backend) Waits(context.Context) (schemas.LockWaits, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waits, nil
}

func (d *backend) Lock(_ context.Context, id string) (schemas.CheckoutLock, error) {
	for _, l := range d.locks {
		if l.ID == id {
			return l, nil
		}
	}
	return schemas.CheckoutLock{}, fault.New(fault.NotFound, "Not found")
}

func (d *backend) Release(ctx context.Context, id, reason string) (schemas.CheckoutLock, error) {
	if d.refusal != nil {
		return schemas.CheckoutLock{}, d.refusal
	}
	d.released, d.by = append(d.released, id+" "+reason), okapi.FromContext(ctx)
	return d.Lock(ctx, id)
}

func (d *backend) Patrons(_ context.Context, ids []string) (map[string]records.User, error) {
	d.lookups++
	all := map[string]records.User{
		annID: {ID: annID, Barcode: "ann<1>", Personal: records.Personal{FirstName: "Ann", LastName: "Ahrens"}},
	}
	found := map[string]records.User{}
	for _, id := range ids {
		if u, ok := all[id]; ok {
			found[id] = u
		}
	}
	return found, nil
}

func (d *backend) PatronID(_ context.Context, barcode string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.searches++
	switch {
	case d.lost != nil:
		return "", d.lost
	case barcode == "ann<1>":
		return annID, nil
	case barcode == "new":
		return newID, nil
	}
	return "", fault.New(fault.NotFound, "Not found")
}
