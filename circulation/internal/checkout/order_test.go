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

// recorder is a backend that needs time for each call of the locked part. It records when a call
// begins and when it is answered.
type recorder struct {
	*backend
	calls []string
	lock  string   // granted last
	held  []string // the lock at the begin of each commit
}

func (r *recorder) during(name string, do func()) {
	r.calls = append(r.calls, name+" begins")
	<-time.After(10 * time.Millisecond)
	do()
	r.calls = append(r.calls, name+" is answered")
}

func (r *recorder) Acquire(ctx context.Context, req checkout.LockRequest) (id string, err error) {
	r.during("acquire", func() { id, err = r.backend.Acquire(ctx, req) })
	r.lock = id
	return id, err
}

func (r *recorder) CheckOut(ctx context.Context, c schemas.CheckOut) (result schemas.CheckOutResult, err error) {
	if r.refusesTurn(c) {
		return r.backend.CheckOut(ctx, c)
	}
	r.held = append(r.held, r.lock)
	r.during("commit", func() { result, err = r.backend.CheckOut(ctx, c) })
	return result, err
}

func (r *recorder) Release(ctx context.Context, id string) (err error) {
	r.during("release", func() { err = r.backend.Release(ctx, id) })
	return err
}

// lend checks the book out.
func (r *recorder) lend(t *testing.T) error {
	t.Helper()
	s := r.service()
	s.Locker, s.Committer = r, r
	_, err := s.CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
	})
	return err
}

var (
	grant     = []string{"acquire begins", "acquire is answered"}
	committed = []string{"commit begins", "commit is answered"}
	givenBack = []string{"release begins", "release is answered"}
)

// Storage counts within the commit: see TestCheckOut_CountsAfterTheFence.
func TestOrder_GrantThenCommitThatCounts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*backend)
		want    [][]string
		code    fault.Code
	}{
		"lent": {prepare: func(*backend) {}, want: [][]string{grant, committed, givenBack}},
		"granted at the second try": {
			prepare: func(w *backend) { w.held = 1 }, want: [][]string{grant, grant, committed, givenBack},
		},
		"the count refuses": {
			prepare: func(w *backend) { w.open = []int{2, 3} }, want: [][]string{grant, committed, givenBack},
			code: fault.Invalid,
		},
		"the commit finds the lock gone": {
			prepare: func(w *backend) { w.commit = []error{errLost} },
			want:    [][]string{grant, committed, givenBack, grant, committed, givenBack},
			code:    "",
		},
		"the item changed": {
			prepare: func(w *backend) { w.commit = []error{errChanged} },
			want:    [][]string{grant, committed, committed, givenBack},
			code:    "",
		},
		"the lock is lost, then the item changes": {
			prepare: func(w *backend) { w.commit = []error{errLost, errChanged} },
			want:    [][]string{grant, committed, givenBack, grant, committed, committed, givenBack},
			code:    "",
		},
		"the answer is lost": {
			prepare: func(w *backend) { w.commit = []error{errGone} },
			want:    [][]string{grant, committed, committed, givenBack},
			code:    "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{backend: newBackend()}
				tt.prepare(r.backend)
				if err := r.lend(t); fault.CodeOf(err) != tt.code {
					t.Errorf("got %v, want %q", err, tt.code)
				}
				if want := slices.Concat(tt.want...); !slices.Equal(r.calls, want) {
					t.Errorf("got  %q\nwant %q", r.calls, want)
				}
				for i, c := range r.commits {
					if c.LockID != r.held[i] || !slices.Equal(c.Limits, []schemas.LoanLimit{
						{Max: 3, MaterialTypeID: librarytest.BookTypeID},
					}) {
						t.Errorf("commit %d names the lock %q and the limit %+v, want %q and 3 books", i, c.LockID, c.Limits, r.held[i])
					}
				}
			})
		})
	}
}
