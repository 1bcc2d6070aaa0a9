package drill_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/drill"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	patronID     = "025776f2-cbe0-471a-8bc1-a1b64e38f41e"
	servicePoint = "bbc823fa-06e7-42c6-87b5-605a5da22f15"
)

// backend is the library of the drills, and records which tenants are used. It lends beyond the limit
// while the lock is off.
type backend struct {
	mu       sync.Mutex
	tenants  map[string]bool
	tokens   []string
	callers  []string // of settings, with the id of their request
	on       bool
	version  int
	lent     map[string]bool
	patron   string
	disturb  func(b *backend) // called by each check-out
	lend     func() error     // called by each check-out that the limit allows; nil for none
	checkIns int
}

func newBackend() *backend {
	return &backend{tenants: map[string]bool{}, lent: map[string]bool{}, patron: patronID}
}

func (b *backend) note(ctx context.Context) {
	call := okapi.FromContext(ctx)
	b.tenants[call.Tenant.String()] = true
	b.tokens = append(b.tokens, call.Token+strings.Join(call.Permissions, ""))
}

var errDown = errors.New("down")

func (b *backend) InstallDemo(ctx context.Context) error { b.lock(ctx)(); return ctx.Err() }

func (b *backend) lock(ctx context.Context) (unlock func()) {
	b.mu.Lock()
	b.note(ctx)
	return b.mu.Unlock
}

func (b *backend) UserByBarcode(ctx context.Context, _ string) (library.User, error) {
	defer b.lock(ctx)()
	return library.User{ID: b.patron}, nil
}

func (b *backend) PatronLoans(ctx context.Context, userID string, _ int) ([]json.RawMessage, int, error) {
	defer b.lock(ctx)()
	if userID != patronID {
		return nil, 0, fmt.Errorf("counted the loans of %s", userID)
	}
	return nil, len(b.lent), nil
}

func (b *backend) CountLocks(ctx context.Context) (int, error) { b.lock(ctx)(); return 0, ctx.Err() }

func (b *backend) Update(ctx context.Context, change settings.Change) (settings.Settings, error) {
	defer b.lock(ctx)()
	if len(change.Own.Waits) < 4 {
		return settings.Settings{}, fmt.Errorf("the waits are %v", change.Own.Waits)
	}
	call := okapi.FromContext(ctx)
	b.callers = append(b.callers, call.UserID+" "+call.RequestID)
	b.on = *change.Own.Enabled
	b.version++
	return settings.Settings{Version: fmt.Sprint(b.version)}, nil
}

func (b *backend) Read(ctx context.Context) (s settings.Settings, problem, err error) {
	defer b.lock(ctx)()
	return settings.Settings{Version: fmt.Sprint(b.version)}, nil, nil
}

func (b *backend) checkOut(ctx context.Context, req checkout.Request) (checkout.Lent, error) {
	defer b.lock(ctx)()
	if req.UserBarcode != "P-1001" || req.ServicePointID != servicePoint {
		return checkout.Lent{}, fmt.Errorf("lent by %+v", req)
	}
	if b.disturb != nil {
		b.disturb(b)
	}
	if b.on && len(b.lent) >= drill.Limit {
		return checkout.Lent{}, fault.Validation(fault.Refusal("ITEM_LIMIT_MATERIAL_TYPE", "too many"))
	}
	if b.lend != nil {
		if err := b.lend(); err != nil {
			return checkout.Lent{}, err
		}
	}
	b.lent[req.ItemBarcode] = true
	return checkout.Lent{}, nil
}

func (b *backend) checkIn(ctx context.Context, book, _ string) error {
	defer b.lock(ctx)()
	delete(b.lent, book)
	b.checkIns++
	return nil
}

func (b *backend) newService() *drill.Service {
	return &drill.Service{
		Storage: b, Settings: b, CheckOut: b.checkOut, CheckIn: b.checkIn, Log: slog.New(slog.DiscardHandler),
	}
}

// visitor returns the context of a call for another library.
func visitor(t *testing.T) context.Context {
	t.Helper()
	tenant, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	return okapi.NewContext(t.Context(), okapi.Call{
		Tenant: tenant, Token: "secret", Permissions: []string{"all"}, RequestID: "r1", UserID: "visitor",
	})
}

func TestService_ShowsBothRounds(t *testing.T) {
	t.Parallel()
	b := newBackend()
	r, err := b.newService().Run(visitor(t))
	if err != nil || r.Off.Lent != drill.CheckOuts || r.On.Lent != drill.Limit || r.On.Refused != 5 || r.On.Failed != 0 {
		t.Fatalf("got %+v, %v, want 20 lent and 15 lent", r, err)
	}
	if want := []drill.Reason{{Code: "ITEM_LIMIT_MATERIAL_TYPE", Count: 5}}; !slices.Equal(r.On.Reasons, want) {
		t.Errorf("got the reasons %v, want %v", r.On.Reasons, want)
	}
	if len(b.lent) > 0 {
		t.Errorf("%d books are still lent", len(b.lent))
	}
}

func TestService_TouchesItsOwnTenantOnly(t *testing.T) {
	t.Parallel()
	b := newBackend()
	if _, err := b.newService().Run(visitor(t)); err != nil {
		t.Fatal(err)
	}
	if len(b.tenants) != 1 || !b.tenants[drill.Tenant] {
		t.Errorf("used the tenants %v, want %s alone", b.tenants, drill.Tenant)
	}
	if strings.Join(b.tokens, "") != "" {
		t.Errorf("passed on what the caller may do elsewhere: %q", b.tokens)
	}
	if want := []string{patronID + " r1", patronID + " r1"}; !slices.Equal(b.callers, want) {
		t.Errorf("called as %q, want the drill's patron under the caller's request id: %q", b.callers, want)
	}
}

func TestService_LeavesAnotherLibraryAlone(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.patron = "93f1a0c2-68a5-4c8a-9bd5-3f1f0f0f1234"
	if _, err := b.newService().Run(visitor(t)); !fault.Is(err, fault.Invalid) || b.version+b.checkIns > 0 {
		t.Errorf("got %v, with %d changes of settings and %d check-ins; want INVALID and none", err, b.version, b.checkIns)
	}
}

func TestService_RunsOneAtATimeWithAGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		s := b.newService()
		var inside error
		b.disturb = func(*backend) {
			if inside == nil {
				_, inside = s.Run(visitor(t))
			}
		}
		if _, err := s.Run(visitor(t)); err != nil || !fault.Is(inside, fault.TooManyTries) {
			t.Errorf("got %v, and %v for a second one", err, inside)
		}
		<-time.After(drill.Gap - time.Millisecond)
		if _, err := s.Run(visitor(t)); !fault.Is(err, fault.TooManyTries) {
			t.Errorf("within the gap got %v", err)
		}
		<-time.After(time.Millisecond)
		if _, err := s.Run(visitor(t)); err != nil {
			t.Errorf("after the gap got %v", err)
		}
	})
}

func TestService_NoticesAnotherInstancesDrill(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(b *backend){
		"that begins": func(b *backend) {
			if b.on && len(b.lent) == 3 {
				b.version++
			}
		},
		"that has begun before and lends": func(b *backend) {
			if !b.on && len(b.lent) == 3 {
				b.lent["lent by the other one"] = true
				b.lend = func() error { return fault.Validation(fault.Refusal("ITEM_ALREADY_CHECKED_OUT", "lent")) }
			}
		},
		"that has begun before and takes back": func(b *backend) {
			if b.on && len(b.lent) == drill.Limit {
				clear(b.lent)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.disturb = disturb
			if r, err := b.newService().Run(visitor(t)); !fault.Is(err, fault.Conflict) {
				t.Errorf("got %+v, %v, want CONFLICT", r, err)
			}
		})
	}
}

func TestService_CountsWhatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		failures := []error{
			context.DeadlineExceeded, fault.New(fault.Unavailable, "away"), fault.New(fault.LockNotAcquired, "busy"),
			fault.New(fault.LockNotAcquired, "busy"), errDown, nil,
		}
		b.lend = func() error {
			if len(failures) == 0 {
				return nil
			}
			err := failures[0]
			if failures = failures[1:]; len(failures) == 0 {
				panic("a bug")
			}
			if errors.Is(err, context.DeadlineExceeded) {
				b.mu.Unlock() // for the others
				<-time.After(time.Second)
				b.mu.Lock()
			}
			return err
		}
		r, err := b.newService().Run(visitor(t))
		if err != nil || r.Off.Failed != 4 || r.Off.Refused != 2 || r.Off.Lent != drill.CheckOuts-6 {
			t.Errorf("got %+v, %v, want four failures and two refusals", r, err)
		}
		if want := []drill.Reason{
			{Code: "INTERNAL", Count: 2}, {Code: "busy", Count: 2}, {Code: "TIMEOUT", Count: 1}, {Code: "UNAVAILABLE", Count: 1},
		}; !slices.Equal(r.Off.Reasons, want) || r.Off.Longest != time.Second {
			t.Errorf("got %v in %v, want %v in 1 s", r.Off.Reasons, r.Off.Longest, want)
		}
	})
}
