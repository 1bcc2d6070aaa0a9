// Package drill shows staff what the check-out lock does. It sends 20 check-outs at once for a patron
// with a limit of 15 loans, with the lock off and on. It works in a tenant of its own, whatever
// the tenant of its caller.
package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	// Tenant is the library of drills.
	Tenant = okapi.DrillTenant
	// Limit is how many loans the patron may have.
	Limit = 15
	// CheckOuts is how many are tried at once.
	CheckOuts = 20
	// Gap is the least time between two drills of one instance.
	Gap = 20 * time.Second
)

// What a drill uses of the demo library, which storage keeps in package sample.
const (
	patronBarcode = "P-1001"
	patronID      = "025776f2-cbe0-471a-8bc1-a1b64e38f41e"
	servicePoint  = "bbc823fa-06e7-42c6-87b5-605a5da22f15"
	firstBook     = 1001 // of the barcodes B-1001 and following, under one rule with the limit
)

// patientWaits are long, so that each check-out gets its turn on a slow host too. The drill shows
// the limit, not the waits.
var patientWaits = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}

// Storage keeps the drill's library; the tenant is in the context.
type Storage interface {
	// InstallDemo makes the library and fills it with the demo records; it adds what is missing.
	InstallDemo(ctx context.Context) error
	// UserByBarcode finds a patron. Fault: NotFound.
	UserByBarcode(ctx context.Context, barcode string) (library.User, error)
	// PatronLoans returns at most limit of a patron's open loans, and their number.
	PatronLoans(ctx context.Context, userID string, limit int) ([]json.RawMessage, int, error)
	// CountLocks counts the stored locks, outdated ones too.
	CountLocks(ctx context.Context) (int, error)
}

// Settings are the lock's settings of the tenant in ctx; see settings.Store.
type Settings interface {
	Update(ctx context.Context, change settings.Change) (settings.Settings, error)
	Read(ctx context.Context) (s settings.Settings, problem, err error)
}

// Service runs drills, one at a time. All fields are required. It is safe for concurrent use.
type Service struct {
	Storage  Storage
	Settings Settings
	// CheckOut is that of the endpoint for machines.
	CheckOut func(ctx context.Context, req checkout.Request) (checkout.Lent, error)
	// CheckIn takes an item back at a service point.
	CheckIn func(ctx context.Context, itemBarcode, servicePointID string) error
	Log     *slog.Logger

	mu      sync.Mutex
	running bool
	ended   time.Time // the last one
}

// Result is a drill's: both rounds.
type Result struct{ Off, On Round }

// Round is one burst of check-outs.
type Round struct {
	Lent    int // the patron's open loans afterwards
	Refused int
	Failed  int           // ended without a decision
	Longest time.Duration // of one check-out
	Locks   int           // left behind
	Reasons []Reason      // of refusals and failures
}

// Reason is why check-outs of a round were not lent.
type Reason struct {
	Code  string
	Count int
}

// Run runs a drill until ctx is done. It reads and writes nothing in the tenant of ctx.
//
// Faults: TooManyTries while one runs, or too soon after the last; Conflict if another instance's drill
// came between; Invalid if the tenant is no library of drills; those of storage. The next drill clears up
// what an unfinished one leaves.
func (s *Service) Run(ctx context.Context) (Result, error) {
	tenant, err := okapi.ParseTenant(Tenant)
	if err != nil {
		return Result{}, err
	}
	if err := s.begin(); err != nil {
		return Result{}, err
	}
	defer s.end()
	by := okapi.FromContext(ctx)
	// A new call: neither the caller's token nor the permissions are for this tenant.
	ctx = okapi.Carry(ctx, &okapi.Call{Tenant: tenant, RequestID: by.RequestID, UserID: patronID, Machine: "drill"})
	r, err := s.run(ctx)
	s.Log.InfoContext(ctx, "a drill of the check-out lock", "off", r.Off.Lent, "on", r.On.Lent, "limit", Limit,
		"by", by.UserName, "by_id", by.UserID, "for", by.Tenant.String(), "err", err)
	return r, err
}

func (s *Service) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return fault.New(fault.TooManyTries, "A drill runs at this instance. Try again when it has ended.")
	}
	if left := Gap - time.Since(s.ended); left > 0 {
		return fault.New(fault.TooManyTries, "A drill has just ended. Wait for %d s, then try again.", int(left.Seconds())+1)
	}
	s.running = true
	return nil
}

func (s *Service) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.ended = false, time.Now()
}

// run runs both rounds. ctx has the drill's tenant.
func (s *Service) run(ctx context.Context) (r Result, err error) {
	if err := s.Storage.InstallDemo(ctx); err != nil {
		return r, fmt.Errorf("making the library %s: %w", Tenant, err)
	}
	patron, err := s.Storage.UserByBarcode(ctx, patronBarcode)
	if err != nil {
		return r, fmt.Errorf("finding the patron of the library %s: %w", Tenant, err)
	}
	if patron.ID != patronID {
		return r, fault.New(fault.Invalid, "The library %s is not the one of the drills, so nothing was tried there", Tenant)
	}
	if r.Off, err = s.runRound(ctx, false); err != nil {
		return r, err
	}
	if r.On, err = s.runRound(ctx, true); err != nil {
		return r, err
	}
	return r, s.takeBack(ctx)
}

// runRound sets the lock, takes all books back, and tries to lend them all at once. The settings change
// first: their new version is how the drill of another instance notices this one.
func (s *Service) runRound(ctx context.Context, on bool) (Round, error) {
	set, err := s.Settings.Update(ctx, settings.Change{
		Own: schemas.LockSettings{Enabled: &on, Waits: patientWaits}, Reason: "a drill", ByName: "drill",
	})
	if err != nil {
		return Round{}, fmt.Errorf("setting the lock of the drill: %w", err)
	}
	if err := s.takeBack(ctx); err != nil {
		return Round{}, err
	}
	r := s.sendBurst(ctx)
	if _, r.Lent, err = s.Storage.PatronLoans(ctx, patronID, 0); err != nil {
		return r, fmt.Errorf("counting the loans of the drill: %w", err)
	}
	if r.Locks, err = s.Storage.CountLocks(ctx); err != nil {
		return r, fmt.Errorf("counting the locks of the drill: %w", err)
	}
	now, _, err := s.Settings.Read(ctx)
	if err != nil {
		return r, fmt.Errorf("reading the settings after the drill: %w", err)
	}
	// A drill that began before this one may still lend and take back until it notices the new version.
	disturbed := r.Lent+r.Refused > CheckOuts || r.Lent+r.Refused+r.Failed < CheckOuts
	if now.Version != set.Version || disturbed {
		return r, fault.New(fault.Conflict, "Another drill ran at the same time, so this one shows nothing. Try again.")
	}
	return r, nil
}

// takenBackAtOnce bounds the check-ins that run at once.
const takenBackAtOnce = 4

// takeBack makes all books available.
func (s *Service) takeBack(ctx context.Context) error {
	calls, ctx := library.NewCalls(ctx)
	calls.SetLimit(takenBackAtOnce)
	for _, book := range listBooks() {
		calls.Go(func() error { return s.CheckIn(ctx, book, servicePoint) })
	}
	if err := calls.Wait(); err != nil {
		return fmt.Errorf("taking the books of the drill back: %w", err)
	}
	return nil
}

// listBooks returns the barcodes of the books that are lent.
func listBooks() []string {
	books := make([]string, CheckOuts)
	for i := range books {
		books[i] = fmt.Sprintf("B-%d", firstBook+i)
	}
	return books
}
