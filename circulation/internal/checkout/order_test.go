package checkout_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// recorder is a world that needs time for each call of the locked part. It records when a call
// begins and when it is answered.
type recorder struct {
	*world
	calls []string
}

func (r *recorder) during(name string, do func()) {
	r.calls = append(r.calls, name+" begins")
	<-time.After(10 * time.Millisecond)
	do()
	r.calls = append(r.calls, name+" is answered")
}

func (r *recorder) Acquire(ctx context.Context, req checkout.LockRequest) (id string, err error) {
	r.during("acquire", func() { id, err = r.world.Acquire(ctx, req) })
	return id, err
}

func (r *recorder) OpenLoans(ctx context.Context, c checkout.LoanCount) (n int, err error) {
	r.during("count", func() { n, err = r.world.OpenLoans(ctx, c) })
	return n, err
}

func (r *recorder) CheckOut(ctx context.Context, c schemas.CheckOut) (result schemas.CheckOutResult, err error) {
	r.during("commit", func() { result, err = r.world.CheckOut(ctx, c) })
	return result, err
}

func (r *recorder) Release(ctx context.Context, id string) (err error) {
	r.during("release", func() { err = r.world.Release(ctx, id) })
	return err
}

// lend checks the book out.
func (r *recorder) lend(t *testing.T) error {
	t.Helper()
	s := r.service()
	s.Library, s.Locker, s.Committer = r, r, r
	_, err := s.CheckOut(t.Context(), checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID})
	return err
}

var (
	grant     = []string{"acquire begins", "acquire is answered"}
	count     = []string{"count begins", "count is answered"}
	committed = []string{"commit begins", "commit is answered"}
	givenBack = []string{"release begins", "release is answered"}
)

func TestOrder_GrantThenCountThenCommit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*world)
		want    [][]string
		code    fault.Code
	}{
		"lent":                      {prepare: func(*world) {}, want: [][]string{grant, count, committed, givenBack}},
		"granted at the second try": {prepare: func(w *world) { w.held = 1 }, want: [][]string{grant, grant, count, committed, givenBack}},
		"the count refuses":         {prepare: func(w *world) { w.open = []int{2, 3} }, want: [][]string{grant, count, givenBack}, code: fault.Invalid},
		"the count finds the lock gone": {
			prepare: func(w *world) { w.count = []error{errLost} },
			want:    [][]string{grant, count, givenBack, grant, count, committed, givenBack},
			code:    "",
		},
		"the commit finds the lock gone": {
			prepare: func(w *world) { w.commit = []error{errLost} },
			want:    [][]string{grant, count, committed, givenBack, grant, count, committed, givenBack},
			code:    "",
		},
		"the item changed": {
			prepare: func(w *world) { w.commit = []error{errChanged} },
			want:    [][]string{grant, count, committed, count, committed, givenBack},
			code:    "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{world: newWorld()}
				tt.prepare(r.world)
				if err := r.lend(t); fault.CodeOf(err) != tt.code {
					t.Errorf("got %v, want %q", err, tt.code)
				}
				if want := slices.Concat(tt.want...); !slices.Equal(r.calls, want) {
					t.Errorf("got  %q\nwant %q", r.calls, want)
				}
			})
		})
	}
}

func TestOrder_CountAndCommitNameOneLock(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.count = []error{errLost}
	w.commit = []error{errChanged}
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	last := w.commits[len(w.commits)-1].LockID
	if len(w.shown) != 3 || w.shown[0] == "" || w.shown[0] == last || w.shown[1] != last || w.shown[2] != last {
		t.Errorf("the counts named %q, the commit %s; want the lost lock, and the new one twice", w.shown, last)
	}
}

func TestOrder_LostLocksEndWithTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.count = slices.Repeat([]error{errLost}, 99)
		w.onStep = func(s checkout.Step) {
			if s == checkout.Locked {
				<-time.After(700 * time.Millisecond)
			}
		}
		if _, err := w.checkOut(t); !fault.Is(err, fault.LockNotAcquired) || len(w.commits) != 0 {
			t.Errorf("got %v after %d commits, want %s", err, len(w.commits), fault.LockNotAcquired)
		}
		if len(w.released) != 3 {
			t.Errorf("took %d locks within a budget of 2 s and 700 ms each", len(w.released))
		}
	})
}
