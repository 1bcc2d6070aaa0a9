package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	lockID  = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	annID   = "77477611-ab44-4082-a0d8-42f7acdfde11"
	staffID = "503a81cd-6c26-400f-b620-14c08943697c"
)

var environment = settings.Environment{TTL: 3 * time.Second, Waits: []time.Duration{time.Second}}

// backend is storage, settings and explainer; asked is what reached them.
type backend struct {
	admin.TerminalStore // what no test here needs

	mu      sync.Mutex
	asked   []string
	err     error  // of every call but Users
	failing string // the beginning of the calls that err is for; "" for all
	users   []library.User
	noUsers error
	change  settings.Change
	problem error
	delay   time.Duration // of Figures

	named    []library.User
	searched map[string][]library.User // by beginnings

	changes  []schemas.LockChange
	current  settings.Settings // in force; without a version the environment's
	rules    string
	policies []policy.LoanPolicy
}

func (b *backend) note(format string, args ...any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	call := fmt.Sprintf(format, args...)
	b.asked = append(b.asked, call)
	if !strings.HasPrefix(call, b.failing) {
		return nil
	}
	return b.err
}

func (b *backend) StoredRules(context.Context) (schemas.CirculationRules, error) {
	return schemas.CirculationRules{RulesAsText: b.rules}, b.note("rules")
}

func (b *backend) LoanPolicyRecords(_ context.Context, ids []string) ([]policy.LoanPolicy, error) {
	return b.policies, b.note("policies %s", ids)
}

// ExistingPolicies knows all but those of which the id begins with "missing". It has ids in lower case.
func (b *backend) ExistingPolicies(_ context.Context, kind policy.Kind, ids []string) ([]string, error) {
	var existing []string
	for _, id := range ids {
		if !strings.HasPrefix(id, "missing") {
			existing = append(existing, strings.ToLower(id))
		}
	}
	return existing, b.note("existing %s %s", kind, ids)
}

func (b *backend) Locks(_ context.Context, f admin.LockFilter) (schemas.CheckoutLocks, error) {
	return schemas.CheckoutLocks{TotalRecords: 7}, b.note("locks %s %s %d %d", f.UserID, f.Holder, f.Offset, f.Limit)
}

func (b *backend) Lock(_ context.Context, id string) (schemas.CheckoutLock, error) {
	return schemas.CheckoutLock{ID: id}, b.note("lock %s", id)
}

func (b *backend) ForceRelease(_ context.Context, id string, r schemas.ForcedRelease) (schemas.CheckoutLock, error) {
	return schemas.CheckoutLock{ID: id, UserID: annID}, b.note("release %s: %q by %q", id, r.Reason, r.ByName)
}

func (b *backend) LockChanges(_ context.Context, kind string, offset, limit int) (schemas.LockChanges, error) {
	page := b.changes[min(offset, len(b.changes)):min(offset+limit, len(b.changes))]
	return schemas.LockChanges{TotalRecords: 7, Changes: page}, b.note("changes %s %d %d", kind, offset, limit)
}

func (b *backend) PastCheckOuts(_ context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error) {
	return schemas.PastCheckOuts{More: true}, b.note("history %s %d %d", f.UserBarcode, f.Offset, f.Limit)
}

func (b *backend) Figures(ctx context.Context, f schemas.FigureFilter) (schemas.Figures, error) {
	id, _ := okapi.TenantFrom(ctx)
	err := b.note("figures %s %d", id, f.Minutes)
	select {
	case <-time.After(b.delay):
		return schemas.Figures{Waiting: b.times(), Held: f.Minutes}, err
	case <-ctx.Done():
		return schemas.Figures{}, ctx.Err()
	}
}

func (b *backend) Waits(context.Context) (schemas.LockWaits, error) {
	return schemas.LockWaits{}, b.note("waits")
}

func (b *backend) CheckLimit(_ context.Context, since time.Time) (schemas.LimitCheck, error) {
	return schemas.LimitCheck{LimitReached: 3}, b.note("limit since %s", since.UTC().Format(time.DateOnly))
}

func (b *backend) NamedInRules(_ context.Context, kind string, ids []string) ([]library.Named, error) {
	var found []library.Named
	for _, id := range ids {
		found = append(found, library.Named{ID: id, Name: "the " + kind})
	}
	return found, b.note("names of %s %s", kind, ids)
}

func lastMinutes(n int) schemas.FigureFilter { return schemas.FigureFilter{Minutes: n} }

func (b *backend) times() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked)
}

func (b *backend) Users(_ context.Context, ids []string) ([]library.User, error) {
	if err := b.note("users %s", strings.Join(ids, " ")); err != nil && b.noUsers == nil {
		b.noUsers = err
	}
	return b.users, b.noUsers
}

func (b *backend) UserByBarcode(_ context.Context, barcode string) (library.User, error) {
	return library.User{ID: annID}, b.note("user %s", barcode)
}

func (b *backend) UsersNamed(_ context.Context, text string) ([]library.User, error) {
	return b.named, b.note("named %s", text)
}

// SearchUsers finds the users for the beginnings that searched has.
func (b *backend) SearchUsers(_ context.Context, beginnings []string, limit int) ([]library.User, error) {
	text := strings.Join(beginnings, " ")
	return b.searched[text], b.note("search %s, %d", text, limit)
}

func (b *backend) ItemsByBarcode(_ context.Context, barcodes []string) ([]library.Item, error) {
	return []library.Item{{Barcode: "B1", HoldingsRecordID: "H1"}}, b.note("items %s", barcodes)
}

func (b *backend) HoldingsRecords(_ context.Context, ids []string) ([]library.Holdings, error) {
	return []library.Holdings{{ID: "h1", InstanceID: "T1"}}, b.note("holdings %s", ids)
}

func (b *backend) Instances(_ context.Context, ids []string) ([]library.Instance, error) {
	return []library.Instance{{ID: "t1", Title: "Moby Dick"}}, b.note("instances %s", ids)
}

func (b *backend) ServicePoints(_ context.Context, ids []string) ([]library.ServicePoint, error) {
	return []library.ServicePoint{{ID: "desk", Name: "Front desk"}}, b.note("service points %s", ids)
}

func (b *backend) ListServicePoints(_ context.Context, limit int) ([]library.ServicePoint, error) {
	return []library.ServicePoint{{ID: "desk", Name: "Front desk"}}, b.note("all service points, %d", limit)
}

func (b *backend) Read(context.Context) (settings.Settings, error, error) {
	current := b.current
	if current.Version == "" {
		current = environment.Settings()
	}
	return current, b.problem, b.note("read")
}

func (b *backend) Update(_ context.Context, change settings.Change) (settings.Settings, error) {
	b.change = change
	s := environment.Settings()
	s.Version = "8"
	return s, b.note("update: %q by %q", change.Reason, change.ByName)
}

func (b *backend) Explain(_ context.Context, req checkout.DryRunRequest) (checkout.Explanation, error) {
	return checkout.Explanation{WouldLend: true}, b.note("explain %s", req.ItemBarcode)
}

func (b *backend) service() *admin.Service {
	return admin.NewService(b, b, environment, b, slog.New(slog.DiscardHandler))
}

func inTenant(t *testing.T, name string) context.Context {
	t.Helper()
	id, err := okapi.ParseTenant(name)
	if err != nil {
		t.Fatal(err)
	}
	return okapi.WithTenant(t.Context(), id)
}
