// Package oversight is what staff see of the check-out lock and do about it: its
// settings and who changed them, the locks that are held, what became of
// check-outs, and what would become of one. The staff pages and the API are two
// fronts of it.
//
// Who acts is in the context: package call's UserID, UserName, or both.
package oversight

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
)

// Settings keeps the check-out lock's settings of the tenant in ctx.
type Settings interface {
	Read(ctx context.Context) (s settings.Settings, problem, err error)
	// Update replaces the tenant's own settings; see settings.Store.
	Update(ctx context.Context, change settings.Change) (settings.Settings, error)
}

// LockFilter selects locks to list; the zero value is all, oldest first.
type LockFilter struct {
	UserID   string // a patron's; empty is everybody's
	Holder   string // the instance that holds them, exactly; empty is any
	Outdated *bool  // nil is both
	Offset   int
	Limit    int // 1 to 1000
}

// Storage is what circulation-storage keeps about locks and check-outs.
type Storage interface {
	Locks(ctx context.Context, f LockFilter) (schemas.CheckoutLocks, error)
	// ForceRelease releases a lock, outdated or not, and notes who did it and why.
	// Fault: NotFound.
	ForceRelease(ctx context.Context, lockID string, r schemas.ForcedRelease) (schemas.CheckoutLock, error)
	// LockChanges returns changes of a kind, all kinds for "", newest first.
	LockChanges(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error)
	PastCheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error)
	// Figures are about the last minutes, 1 to schemas.MaxFigureMinutes.
	Figures(ctx context.Context, minutes int) (schemas.Figures, error)
	// Users returns those of the ids that are of users.
	Users(ctx context.Context, ids []string) ([]checkout.User, error)
	// UserByBarcode finds a patron. Fault: NotFound.
	UserByBarcode(ctx context.Context, barcode string) (checkout.User, error)
}

// Explainer says what would become of a check-out.
type Explainer interface {
	Explain(ctx context.Context, req checkout.DryRunRequest) (checkout.Explanation, error)
}

// Service is oversight for all tenants: the tenant is in the context. It is safe
// for concurrent use.
type Service struct {
	storage     Storage
	settings    Settings
	environment settings.Environment
	explainer   Explainer
	log         *slog.Logger
}

// NewService returns oversight of what the others do.
func NewService(storage Storage, s Settings, environment settings.Environment, e Explainer, log *slog.Logger) *Service {
	return &Service{storage: storage, settings: s, environment: environment, explainer: e, log: log}
}

// Environment holds the settings of a tenant that sets none of its own.
func (s *Service) Environment() settings.Environment { return s.environment }

// Settings returns the settings in force, each with where it comes from.
func (s *Service) Settings(ctx context.Context) (settings.View, error) {
	panic("to be written")
}

// ChangeSettings changes the tenant's settings by a body as
// settings.Environment.ParseChange reads it; its property reason goes into the
// history of changes with who acts. Faults: Invalid, with a detail for each
// property that is wrong, whose first parameter names it; Conflict when the body's
// version is no longer the stored one.
func (s *Service) ChangeSettings(ctx context.Context, body json.RawMessage) (settings.View, error) {
	panic("to be written")
}

// Changes returns what people did to the lock, newest first. kind is one of
// schemas.ChangeSettings and schemas.ChangeRelease, or empty for both. Fault:
// Malformed for another kind.
func (s *Service) Changes(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error) {
	panic("to be written")
}

// Locks returns the stored locks, oldest first, outdated ones too.
func (s *Service) Locks(ctx context.Context, f LockFilter) (schemas.CheckoutLocks, error) {
	panic("to be written")
}

// Release releases a lock by force. That is safe at any time: the commit of
// whoever holds it is refused, and it takes the lock and counts again. Who acts and
// the reason are kept. Faults: NotFound; Invalid for a reason that is blank or too
// long.
func (s *Service) Release(ctx context.Context, lockID, reason string) (schemas.CheckoutLock, error) {
	panic("to be written")
}

// CheckOuts returns a page of the history, newest first. Fault: Invalid for a
// filter that cannot be used.
func (s *Service) CheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error) {
	panic("to be written")
}

// FiguresAge is how old Figures may be: however many look, storage is asked once
// in that time by each instance.
const FiguresAge = 5 * time.Second

// Figures returns those of the last minutes, 1 to schemas.MaxFigureMinutes; they
// may be FiguresAge old.
func (s *Service) Figures(ctx context.Context, minutes int) (schemas.Figures, error) {
	panic("to be written")
}

// Explain says whether a check-out would succeed now, and which rule and policy
// decide. It takes no lock and writes nothing.
func (s *Service) Explain(ctx context.Context, req checkout.DryRunRequest) (checkout.Explanation, error) {
	return s.explainer.Explain(ctx, req)
}

// Patrons returns the patrons with these ids, by id; who is gone is missing.
func (s *Service) Patrons(ctx context.Context, ids []string) (map[string]checkout.User, error) {
	panic("to be written")
}

// PatronID returns the id of the patron with the barcode. Fault: NotFound.
func (s *Service) PatronID(ctx context.Context, barcode string) (string, error) {
	panic("to be written")
}
