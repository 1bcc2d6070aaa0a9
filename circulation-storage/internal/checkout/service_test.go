package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// fixedStore ends every commit the same way.
type fixedStore struct {
	outcome checkout.Outcome
	err     error
}

func (s fixedStore) CheckOut(context.Context, checkout.CheckOut) (schemas.CheckOutResult, checkout.Outcome, error) {
	return schemas.CheckOutResult{}, s.outcome, s.err
}

func (s fixedStore) CheckIn(context.Context, checkout.CheckIn) (schemas.CheckInResult, checkout.Outcome, error) {
	return schemas.CheckInResult{}, s.outcome, s.err
}

func (s fixedStore) SweepCheckIns(context.Context, int) (int, error) { return 0, s.err }

func (s fixedStore) DurableLoan(context.Context, uuid.UUID) (json.RawMessage, error) {
	return nil, s.err
}

func (s fixedStore) CountOpenLoans(context.Context, checkout.OpenLoans) (int, error) {
	return 7, s.err
}

type tally struct{ out, in []checkout.Outcome }

func (c *tally) CheckedOut(o checkout.Outcome, _ time.Duration) { c.out = append(c.out, o) }
func (c *tally) CheckedIn(o checkout.Outcome, _ time.Duration)  { c.in = append(c.in, o) }

func TestService_TellsHowCommitsEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		store   fixedStore
		bad     bool
		out, in checkout.Outcome
	}{
		"committed":        {fixedStore{outcome: checkout.Committed}, false, checkout.Committed, checkout.Committed},
		"repeated":         {fixedStore{outcome: checkout.Repeated}, false, checkout.Repeated, checkout.Repeated},
		"lock lost":        {fixedStore{err: fault.New(fault.LockLost, "")}, false, checkout.LockLost, checkout.LockLost},
		"settings changed": {fixedStore{err: fault.New(fault.SettingsChanged, "")}, false, checkout.SettingsChanged, checkout.SettingsChanged},
		"item changed":     {fixedStore{err: fault.New(fault.ItemChanged, "")}, false, checkout.ItemChanged, checkout.ItemChanged},
		"request changed":  {fixedStore{err: fault.New(fault.RequestChanged, "")}, false, checkout.RequestChanged, checkout.RequestChanged},
		"refused":          {fixedStore{err: fault.Validation()}, false, checkout.Refused, checkout.Refused},
		"bad body":         {fixedStore{err: errors.New("not reached")}, true, checkout.Refused, checkout.Refused},
		"broken":           {fixedStore{err: errors.New("boom")}, false, checkout.Failed, checkout.Failed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got tally
			s := checkout.NewService(tt.store, &got)
			out, in := body(t, nil), checkInBody(t, nil)
			if tt.bad {
				out, in = []byte("{"), []byte("{}")
			}
			_, _, outErr := s.CheckOut(t.Context(), out)
			_, inErr := s.CheckIn(t.Context(), in)
			if !slices.Equal(got.out, []checkout.Outcome{tt.out}) || !slices.Equal(got.in, []checkout.Outcome{tt.in}) {
				t.Errorf("got %q and %q, want %q and %q", got.out, got.in, tt.out, tt.in)
			}
			if failed := tt.bad || tt.store.err != nil; failed != (outErr != nil) || failed != (inErr != nil) {
				t.Errorf("got errors %v and %v, want some: %t", outErr, inErr, failed)
			}
			if !slices.Contains(checkout.Outcomes(), tt.out) {
				t.Errorf("Outcomes lacks %q", tt.out)
			}
		})
	}
}
