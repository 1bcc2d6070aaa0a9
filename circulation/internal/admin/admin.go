// Package admin is what staff see of the check-out lock and do about it: its
// settings and who changed them, the locks that are held, what became of
// check-outs, and what would become of one. The staff pages and the API are two
// fronts of it.
//
// Who acts is in the context: package call's UserID, UserName, or both.
package admin

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Settings keeps the check-out lock's settings of the tenant in ctx.
type Settings interface {
	Read(ctx context.Context) (s settings.Settings, problem, err error)
	// Update replaces the tenant's own settings; see settings.Store.
	Update(ctx context.Context, change settings.Change) (settings.Settings, error)
}

// Storage is what circulation-storage keeps about locks and check-outs.
type Storage interface {
	Locks(ctx context.Context, f LockFilter) (schemas.CheckoutLocks, error)
	// Lock returns one of them. Fault: NotFound.
	Lock(ctx context.Context, lockID string) (schemas.CheckoutLock, error)
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

// Service serves staff of all tenants: the tenant is in the context. It is safe
// for concurrent use.
type Service struct {
	storage     Storage
	settings    Settings
	environment settings.Environment
	explainer   Explainer
	log         *slog.Logger
	figures     *figuresCache
	names       *names
}

// NewService returns the service of staff.
func NewService(storage Storage, s Settings, environment settings.Environment, e Explainer, log *slog.Logger) *Service {
	return &Service{storage: storage, settings: s, environment: environment, explainer: e, log: log, figures: newFiguresCache(), names: newNames()}
}

// Environment holds the settings of a tenant that sets none of its own.
func (s *Service) Environment() settings.Environment { return s.environment }

// Explain says whether a check-out would succeed now, and which rule and policy
// decide. It takes no lock and writes nothing.
func (s *Service) Explain(ctx context.Context, req checkout.DryRunRequest) (checkout.Explanation, error) {
	return s.explainer.Explain(ctx, req)
}

// CheckOuts returns a page of the history, newest first. Fault: Invalid for a
// filter that cannot be used.
func (s *Service) CheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error) {
	return s.storage.PastCheckOuts(ctx, f)
}

// Patrons returns the patrons with these ids, by id; who is gone is missing.
func (s *Service) Patrons(ctx context.Context, ids []string) (map[string]checkout.User, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	patrons := map[string]checkout.User{}
	found, err := s.storage.Users(ctx, slices.Compact(ids))
	if err != nil {
		return nil, fmt.Errorf("finding patrons: %w", err)
	}
	for _, u := range found {
		patrons[u.ID] = u
	}
	return patrons, nil
}

// PatronID returns the id of the patron with the barcode. Fault: NotFound.
func (s *Service) PatronID(ctx context.Context, barcode string) (string, error) {
	if !checkout.PlausibleBarcode(barcode) {
		return "", fault.New(fault.NotFound, "No patron can have the barcode %s", fault.Shown(barcode))
	}
	u, err := s.storage.UserByBarcode(ctx, barcode)
	return u.ID, err
}

// wrong is an Invalid fault that names what a caller gave, and what it must be.
// Storage says the same of all that is not checked here.
func wrong(name, rule, value string) error {
	return fault.Validation(fault.Refusal(string(fault.Invalid), name+" "+rule, fault.Param(name, fault.Shown(value))))
}
