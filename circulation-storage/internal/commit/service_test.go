package commit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// fixedStore ends every commit the same way.
type fixedStore struct {
	commit.Store
	outcome  commit.Outcome
	released bool // with the loan
	err      error
}

func (s fixedStore) CheckOut(context.Context, commit.CheckOut) (schemas.CheckOutResult, commit.Outcome, error) {
	return schemas.CheckOutResult{LockReleased: s.released}, s.outcome, s.err
}

func (s fixedStore) CheckIn(context.Context, commit.CheckIn) (schemas.CheckInResult, commit.Outcome, error) {
	return schemas.CheckInResult{}, s.outcome, s.err
}

type tally struct {
	out, in  []commit.Outcome
	unfenced int
}

func (c *tally) CheckedOut(o commit.Outcome, _ time.Duration) { c.out = append(c.out, o) }
func (c *tally) LentUnfenced()                                { c.unfenced++ }
func (c *tally) CheckedIn(o commit.Outcome, _ time.Duration)  { c.in = append(c.in, o) }

func TestService_ReportsOutcomes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		store   fixedStore
		bad     bool
		out, in commit.Outcome
	}{
		"committed":        {fixedStore{outcome: commit.Committed}, false, commit.Committed, commit.Committed},
		"repeated":         {fixedStore{outcome: commit.Repeated}, false, commit.Repeated, commit.Repeated},
		"lock lost":        {fixedStore{err: fault.New(fault.LockLost, "")}, false, commit.LockLost, commit.LockLost},
		"settings changed": {fixedStore{err: fault.New(fault.SettingsChanged, "")}, false, commit.SettingsChanged, commit.SettingsChanged},
		"item changed":     {fixedStore{err: fault.New(fault.ItemChanged, "")}, false, commit.ItemChanged, commit.ItemChanged},
		"request changed":  {fixedStore{err: fault.New(fault.RequestChanged, "")}, false, commit.RequestChanged, commit.RequestChanged},
		"limit reached":    {fixedStore{err: fault.New(fault.LimitReached, "")}, false, commit.LimitReached, commit.LimitReached},
		"refused":          {fixedStore{err: fault.Validation()}, false, commit.Refused, commit.Refused},
		"bad body":         {fixedStore{err: errors.New("not reached")}, true, commit.Refused, commit.Refused},
		"broken":           {fixedStore{err: errors.New("boom")}, false, commit.Failed, commit.Failed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got tally
			s := commit.NewService(tt.store, &got, func(context.Context, uuid.UUID) { t.Error("a release was noted") })
			out, in := body(t, nil), checkInBody(t, nil)
			if tt.bad {
				out, in = []byte("{"), []byte("{}")
			}
			_, _, outErr := s.CheckOut(t.Context(), out)
			_, inErr := s.CheckIn(t.Context(), in)
			if !slices.Equal(got.out, []commit.Outcome{tt.out}) || !slices.Equal(got.in, []commit.Outcome{tt.in}) {
				t.Errorf("got %q and %q, want %q and %q", got.out, got.in, tt.out, tt.in)
			}
			if failed := tt.bad || tt.store.err != nil; failed != (outErr != nil) || failed != (inErr != nil) {
				t.Errorf("got errors %v and %v, want some: %t", outErr, inErr, failed)
			}
			if !slices.Contains(commit.Outcomes(), tt.out) {
				t.Errorf("Outcomes lacks %q", tt.out)
			}
		})
	}
}

func TestService_NotesTheReleaseOfALock(t *testing.T) {
	t.Parallel()
	var noted []uuid.UUID
	var got tally
	s := commit.NewService(fixedStore{outcome: commit.Committed, released: true}, &got, func(_ context.Context, user uuid.UUID) { noted = append(noted, user) })
	if _, _, err := s.CheckOut(t.Context(), body(t, nil)); err != nil {
		t.Fatal(err)
	}
	if len(noted) != 1 || noted[0] == uuid.Nil {
		t.Errorf("noted %v, want the patron", noted)
	}
}

func TestService_CountsLoansWithoutAFence(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[commit.Outcome]int{commit.Committed: 1, commit.Repeated: 0} {
		for more, unfenced := range map[string]int{`"unfenced":true`: 1, `"settingsVersion":"1"`: 0} {
			var got tally
			s := commit.NewService(fixedStore{outcome: outcome}, &got, func(context.Context, uuid.UUID) {})
			_, _, err := s.CheckOut(t.Context(), []byte(`{"loan":{"id":"`+loanID.String()+`","userId":"`+patronID.String()+`","itemId":"`+itemID.String()+
				`","loanDate":"2026-03-01T00:00:00Z","action":"checkedout"},"itemVersion":1,`+more+`}`))
			if err != nil || got.unfenced != want*unfenced {
				t.Errorf("%s, %s: got %v and counted %d, want %d", outcome, more, err, got.unfenced, want*unfenced)
			}
		}
	}
}
