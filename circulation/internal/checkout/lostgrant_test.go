package checkout_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas/fault"
)

// silentLocker answers no acquire.
type silentLocker struct{ *world }

func (l silentLocker) Acquire(ctx context.Context, req checkout.LockRequest) (string, error) {
	l.requests = append(l.requests, req)
	<-ctx.Done()
	return "", ctx.Err()
}

func TestALockThatMayHaveBeenGrantedIsGivenBack(t *testing.T) {
	t.Parallel()
	late := fault.New(fault.Timeout, "storage did not answer in time")
	tests := map[string]struct {
		acquire []error
		held    int
		want    bool
	}{
		"the answer took too long":               {[]error{late}, 0, true},
		"the answer was lost twice":              {[]error{errGone, errGone}, 0, true},
		"storage failed, maybe after the grant":  {[]error{errDown}, 0, true},
		"an error without a code":                {[]error{errors.New("boom")}, 0, true},
		"the answer was lost, then it was held":  {[]error{errGone}, 99, true},
		"the answer was lost, then it came":      {[]error{errGone}, 0, false},
		"held by another check-out":              {nil, 99, false},
		"too many wait":                          {[]error{errFull, errFull, errFull, errFull}, 0, false},
		"refused":                                {[]error{fault.New(fault.Invalid, "no")}, 0, false},
		"not begun for too much work in storage": {[]error{fault.New(fault.Overloaded, "busy")}, 0, false},
		"granted at once":                        {nil, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.acquire, w.held = tt.acquire, tt.held
				_, _ = w.checkOut(t)
				if got := len(w.returned) == 1; got != tt.want || len(w.returned) > 1 {
					t.Fatalf("gave back %v, want it: %t", w.returned, tt.want)
				}
				if tt.want && w.returned[0] != librarytest.AnnID+"|"+w.requests[0].RequestID {
					t.Errorf("gave back %v, asked for %v", w.returned, w.requests)
				}
			})
		})
	}
}

func TestALockIsGivenBackWhenTheMachineLeavesWhileItIsAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.service()
		s.Locker = silentLocker{w}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, err := s.CheckOut(ctx, checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID})
		if !errors.Is(err, context.DeadlineExceeded) || len(w.returned) != 1 || !strings.HasSuffix(w.returned[0], w.requests[0].RequestID) {
			t.Errorf("got %v, gave back %v, asked for %v", err, w.returned, w.requests)
		}
	})
}
