// Package admin has what staff see and do about the check-out lock: its settings and their
// changes, the held locks, the history of check-outs, and the explanation of a single one. The
// staff pages and the API are two fronts of it.
//
// The user who acts is in the context: okapi.Call's UserID, UserName, or both.
package admin

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"checkoutlock/circulation/internal/cache"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// Permissions are what the gateway must have granted for each part, as for FOLIO's
// endpoints. The pages and the API require the same ones.
const (
	MaySeeSettings    = "circulation.check-out-lock-settings.item.get"
	MayChangeSettings = "circulation.check-out-lock-settings.item.put"
	MaySeeChanges     = "circulation.check-out-lock-changes.collection.get"
	MaySeeLocks       = "circulation.check-out-locks.collection.get"
	MayReleaseLocks   = "circulation.check-out-locks.item.release.post"
	MaySeeCheckOuts   = "circulation.check-out-history.collection.get"
	MaySeeFigures     = "circulation.check-out-figures.get"
	MayExplain        = "circulation.check-out-explanation.post"
	MaySeeRules       = "circulation.rules.get" // FOLIO's
	MaySeeTerminals   = "circulation.self-check-terminals.collection.get"
	// MayChangeTerminals is for machines and their passwords.
	MayChangeTerminals = "circulation.self-check-terminals.item.put"
	MayDrill           = "circulation.check-out-lock-drill.post" // in a tenant of its own
	MaySeePatrons      = "users.collection.get"                  // FOLIO's: to search patrons by name, and to read names
)

// Permissions returns all of them.
func Permissions() []string {
	return []string{
		MaySeeSettings, MayChangeSettings, MaySeeChanges, MaySeeLocks, MayReleaseLocks, MaySeeCheckOuts, MaySeeFigures, MayExplain, MaySeeRules,
		MaySeePatrons, MaySeeTerminals, MayChangeTerminals, MayDrill,
	}
}

// Settings keeps the check-out lock's settings of the tenant in ctx.
type Settings interface {
	Read(ctx context.Context) (s settings.Settings, problem, err error)
	// Update replaces the tenant's own settings; see settings.Store.
	Update(ctx context.Context, change settings.Change) (settings.Settings, error)
}

// Records reads what storage keeps about locks and check-outs.
type Records interface {
	// Lock returns one lock, outdated or not. Fault: NotFound, also for a malformed id.
	Lock(ctx context.Context, lockID string) (schemas.CheckoutLock, error)
	// LockChanges returns the changes that staff made, newest first. kind is one of
	// schemas.ChangeSettings and schemas.ChangeRelease, or empty for both; limit is 1
	// to schemas.MaxChangePage. Fault: Invalid for anything else.
	LockChanges(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error)
	// PastCheckOuts returns a page of the history, newest first. Fault: Invalid for a
	// filter that cannot be used.
	PastCheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error)
	// Waits returns the check-outs that wait now, and those that waited longest in the last minutes.
	Waits(ctx context.Context) (schemas.LockWaits, error)
}

// Storage is what circulation-storage keeps about locks and check-outs.
type Storage interface {
	Records
	Locks(ctx context.Context, f LockFilter) (schemas.CheckoutLocks, error)
	// ForceRelease releases a lock, outdated or not, and records the user and the reason.
	// Fault: NotFound.
	ForceRelease(ctx context.Context, lockID string, r schemas.ForcedRelease) (schemas.CheckoutLock, error)
	Figures(ctx context.Context, f schemas.FigureFilter) (schemas.Figures, error)
	// CheckLimit says whether the limit held since a time.
	CheckLimit(ctx context.Context, since time.Time) (schemas.LimitCheck, error)
	StoredRules(ctx context.Context) (schemas.CirculationRules, error)
	Policies
	// NamedInRules returns those of the ids that are of records of a kind of circulation rules: the letter
	// of a criterion or of a policy. It returns none for another letter.
	NamedInRules(ctx context.Context, kind string, ids []string) ([]library.Named, error)
	// Users returns those of the ids that are of users.
	Users(ctx context.Context, ids []string) ([]library.User, error)
	// UserByBarcode finds a patron. Fault: NotFound.
	UserByBarcode(ctx context.Context, barcode string) (library.User, error)
	Directory
	TerminalStore
}

// Explainer predicts how a check-out would end.
type Explainer interface {
	// Explain names the rule and the policy that decide. It acquires no lock and writes nothing.
	Explain(ctx context.Context, req checkout.DryRunRequest) (checkout.Explanation, error)
}

// Desk is what both fronts show and do; see Service.
type Desk interface {
	Records
	Explainer
	Environment() settings.Environment
	Settings(ctx context.Context) (settings.View, error)
	ChangeSettings(ctx context.Context, change settings.Change) (settings.View, error)
	Locks(ctx context.Context, f LockFilter) (schemas.CheckoutLocks, error)
	Release(ctx context.Context, lockID, reason string) (schemas.CheckoutLock, error)
	Figures(ctx context.Context, f schemas.FigureFilter) (schemas.Figures, error)
	PatronID(ctx context.Context, barcode string) (string, error)
}

// Service serves staff of all tenants: the tenant is in the context. It is safe
// for concurrent use.
type Service struct {
	Records
	TerminalStore // its changes are logged
	Explainer
	storage     Storage
	settings    Settings
	environment settings.Environment
	log         *slog.Logger
	names       *cache.Cache[nameKey, string]
	figures     *cache.Cache[figuresKey, schemas.Figures]
	figureCalls chan struct{} // bounds the calls under way
	limits      *cache.Cache[limitKey, LimitReview]
	uncounted   *cache.Cache[okapi.Tenant, int]
}

// NewService returns the service of staff.
func NewService(storage Storage, s Settings, environment settings.Environment, e Explainer, log *slog.Logger) *Service {
	return &Service{
		Records: storage, TerminalStore: storage, Explainer: e, storage: storage, settings: s, environment: environment, log: log,
		names:       cache.New[nameKey, string](nameAge, maxNames),
		figures:     cache.New[figuresKey, schemas.Figures](FiguresAge, maxFigures),
		figureCalls: make(chan struct{}, maxFigureCalls),
		limits:      cache.New[limitKey, LimitReview](limitAge, maxLimitReviews),
		uncounted:   cache.New[okapi.Tenant, int](uncountedAge, maxLimitReviews),
	}
}

// Environment holds the settings of a tenant that sets none of its own.
func (s *Service) Environment() settings.Environment { return s.environment }

// Patrons returns the patrons with these ids, by id. It leaves out those that no longer exist.
func (s *Service) Patrons(ctx context.Context, ids []string) (map[string]library.User, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	patrons := map[string]library.User{}
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
	if library.KeepBarcode(barcode) == "" {
		return "", fault.New(fault.NotFound, "No patron can have the barcode %s", fault.Shown(barcode))
	}
	u, err := s.storage.UserByBarcode(ctx, barcode)
	return u.ID, err
}

// invalidValue is the Invalid fault for a caller's value that breaks a rule. Storage answers the
// same for the rules that are not checked here.
func invalidValue(name, rule, value string) error {
	return fault.Validation(fault.Refusal(string(fault.Invalid), name+" "+rule, fault.Param(name, fault.Shown(value))))
}

// Settings returns the settings in force, each with its source.
func (s *Service) Settings(ctx context.Context) (settings.View, error) {
	current, problem, err := s.settings.Read(ctx)
	if err != nil {
		return settings.View{}, err
	}
	return current.View(problem), nil
}

// ChangeSettings changes the tenant's settings. The history of changes keeps the reason and the user
// who acts, who replaces ByName. Fault: Conflict if the change's version is no longer the stored one.
func (s *Service) ChangeSettings(ctx context.Context, change settings.Change) (settings.View, error) {
	change.ByName = s.actorName(ctx)
	current, err := s.settings.Update(ctx, change)
	if err != nil {
		return settings.View{}, err
	}
	s.log.InfoContext(ctx, "check-out lock settings changed", "enabled", current.Enabled, "ttl", current.TTL,
		"waits", current.Waits, "version", current.Version, "by", change.ByName, "by_id", okapi.FromContext(ctx).UserID)
	return current.View(nil), nil
}

const (
	// FiguresAge is how old Figures may be: each instance asks storage once in that time,
	// for any number of viewers.
	FiguresAge = 5 * time.Second
	// figuresTimeout bounds one call to storage; a caller that waits for it may leave earlier.
	figuresTimeout = 5 * time.Second
	// maxFigures bounds the figures that are kept, over all tenants and filters. Those
	// of a day by minutes are some 200 KB.
	maxFigures = 128
	// maxFigureCalls bounds the calls under way: a caller may name many numbers of minutes.
	maxFigureCalls = 4
)

type figuresKey struct {
	tenant okapi.Tenant
	filter schemas.FigureFilter
}

// Figures returns those of the last minutes; they may be FiguresAge old. Callers share them, so no caller may change what they point at.
// Fault: Invalid for a filter that storage refuses.
func (s *Service) Figures(ctx context.Context, f schemas.FigureFilter) (schemas.Figures, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return schemas.Figures{}, err
	}
	return s.figures.Get(ctx, figuresKey{id, f}, func(ctx context.Context, _ schemas.Figures) (schemas.Figures, error) {
		ctx, cancel := context.WithTimeout(ctx, figuresTimeout)
		defer cancel()
		select {
		case s.figureCalls <- struct{}{}:
			defer func() { <-s.figureCalls }()
			return s.storage.Figures(ctx, f)
		case <-ctx.Done():
			return schemas.Figures{}, ctx.Err()
		}
	})
}
