package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/okapi"
)

func ofStaff(t *testing.T, tenant, userID string) context.Context {
	t.Helper()
	return okapi.NewContext(inTenant(t, tenant), okapi.Call{UserID: userID})
}

func TestViewerName_TakesOneCallInTenMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &backend{
			users: []library.User{
				{ID: staffID, Username: "ann", Personal: library.Personal{FirstName: "Ann", LastName: "Reader"}},
			},
		}
		s := b.service()
		look := func(tenant, userID, want string, calls int) {
			t.Helper()
			if got := s.ViewerName(ofStaff(t, tenant, userID)); got != want || len(b.asked) != calls {
				t.Errorf("%s of %s: got %q after %d calls, want %q after %d", userID, tenant, got, len(b.asked), want, calls)
			}
		}
		if name, known := s.KnownViewerName(ofStaff(t, "diku", staffID)); name != "" || known {
			t.Errorf("before anybody asked: got %q, known is %t", name, known)
		}
		look("diku", staffID, "Reader, Ann", 1)
		look("diku", staffID, "Reader, Ann", 1)
		if name, known := s.KnownViewerName(ofStaff(t, "diku", staffID)); name != "Reader, Ann" || !known {
			t.Errorf("got %q, known is %t", name, known)
		}
		b.users = nil
		look("other", staffID, "", 2) // which has no user with the id
		look("diku", annID, "", 3)
		<-time.After(9 * time.Minute)
		look("diku", staffID, "Reader, Ann", 3)
		<-time.After(time.Minute)
		look("diku", staffID, "", 4)
	})
}

func TestViewerName_TakesNoCallAfterASignIn(t *testing.T) {
	t.Parallel()
	b := &backend{}
	s := b.service()
	for info, want := range map[string]string{"ann": "ann", "": "", "a\x00\n": "a"} {
		ctx := okapi.NewContext(inTenant(t, "diku"), okapi.Call{UserName: info})
		if name, known := s.KnownViewerName(ctx); name != want || !known || s.ViewerName(ctx) != want {
			t.Errorf("%q: got %q, known is %t, want %q", info, name, known, want)
		}
	}
	if len(b.asked) != 0 {
		t.Errorf("asked %q", b.asked)
	}
}

// stuck is a storage whose users come late or never.
type stuck struct {
	*backend
}

func (s stuck) Users(ctx context.Context, ids []string) ([]library.User, error) {
	_ = s.note("users %s", strings.Join(ids, " "))
	<-ctx.Done()
	return nil, fmt.Errorf("asking for users: %w", ctx.Err())
}

func TestViewerName_WaitsShortlyAndRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		s := admin.NewService(stuck{b}, b, environment, b, slog.New(slog.DiscardHandler))
		left, leave := context.WithCancel(ofStaff(t, "diku", staffID))
		leave()
		s.ViewerName(left) // the error of a caller that left is not kept
		for i, want := range []time.Duration{300 * time.Millisecond, 0, 0} {
			began := time.Now()
			if got := s.ViewerName(ofStaff(t, "diku", staffID)); got != "" || time.Since(began) != want {
				t.Errorf("page %d: got %q after %s, want nothing after %s", i, got, time.Since(began), want)
			}
		}
		<-time.After(time.Minute)
		s.ViewerName(ofStaff(t, "diku", staffID))
		if len(b.asked) != 3 {
			t.Errorf("asked %d times, want 3", len(b.asked))
		}
		// A change looks the name up again, and waits longer.
		began := time.Now()
		if _, err := s.Release(ofStaff(t, "diku", staffID), lockID, "stuck"); err != nil ||
			time.Since(began) != 2*time.Second {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

// stuckOnce is one for the first who asks.
type stuckOnce struct {
	stuck
	first *sync.Once
}

func (s stuckOnce) Users(ctx context.Context, ids []string) ([]library.User, error) {
	late := false
	s.first.Do(func() { late = true })
	if late {
		return s.stuck.Users(ctx, ids)
	}
	return s.backend.Users(ctx, ids)
}

func TestViewerName_OutlivesAFailedLookup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &backend{users: []library.User{{ID: staffID, Username: "ann"}}}
		s := admin.NewService(stuckOnce{stuck{b}, new(sync.Once)}, b, environment, b, slog.New(slog.DiscardHandler))
		ctx := ofStaff(t, "diku", staffID)
		var looks sync.WaitGroup
		looks.Go(func() { s.ViewerName(ctx) })
		synctest.Wait()
		if got := s.ViewerName(ctx); got != "ann" {
			t.Errorf("got %q, want ann", got)
		}
		looks.Wait()
		if name, known := s.KnownViewerName(ctx); name != "ann" || !known {
			t.Errorf("got %q, known is %t, want ann", name, known)
		}
	})
}

func TestViewerName_KeepsABoundedNumber(t *testing.T) {
	t.Parallel()
	b := &backend{noUsers: errors.New("down")}
	s := b.service()
	for i := range 2500 {
		s.ViewerName(ofStaff(t, "diku", fmt.Sprint("user-", i)))
	}
	if n := s.RememberedNames(); n > 1000 {
		t.Errorf("%d names are kept, want at most 1000", n)
	}
}
