package checkout_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestCommit_WithoutAnAnswer(t *testing.T) {
	t.Parallel()
	errLimit := newLimitReached(0)
	forever := slices.Repeat([]error{errGone}, 99)
	notThere := func(commits ...error) func(*backend) {
		return func(w *backend) { w.commit, w.loanErr = commits, librarytest.ErrNone }
	}
	off := settings.Settings{Version: "7"}
	tests := map[string]struct {
		prepare func(*backend)
		code    fault.Code
		older   fault.Code // of a storage that cannot settle; "" is the same
		fenced  bool       // by a durable release
		settled bool
	}{
		"the second try is answered":          {prepare: func(w *backend) { w.commit = []error{errGone} }},
		"a broken storage may have committed": {prepare: func(w *backend) { w.commit = []error{errDown} }},
		"the loan is there": {
			prepare: func(w *backend) { w.commit = forever }, fenced: true, settled: true,
		},
		"the loan is not there, fenced off": {
			prepare: notThere(forever...), code: fault.Unavailable, fenced: true, settled: true,
		},
		"the same by a defect of storage": {
			prepare: notThere(slices.Repeat([]error{errDown}, 99)...), code: fault.Internal, fenced: true, settled: true,
		},
		"the loan cannot be read": {
			prepare: func(w *backend) { w.commit, w.loanErr = forever, errGone }, code: fault.OutcomeUnknown, fenced: true,
			settled: true,
		},
		"the lock cannot be released": {
			prepare: func(w *backend) { w.commit, w.lockGone = forever, errGone }, fenced: true, settled: true,
		},
		"the lock was lost": {prepare: notThere(errGone, errLost), fenced: true},
		"refused by a limit": {
			prepare: notThere(errGone, errLimit), code: fault.Invalid, fenced: true, settled: true,
		},
		"refused by a limit at once": {prepare: func(w *backend) { w.commit = []error{errLimit} }, code: fault.Invalid},
		"the tenant is no longer ready": {
			prepare: notThere(slices.Repeat([]error{fault.New(fault.TenantNotReady, "upgrade it")}, 99)...),
			code:    fault.TenantNotReady,
		},
		"refused, and an earlier try lent": {
			prepare: func(w *backend) { w.commit = []error{errGone, errLimit} }, fenced: true, settled: true,
		},
		"refused, and the loan cannot be read": {
			prepare: func(w *backend) { w.commit, w.loanErr = []error{errGone, errLimit}, errGone }, code: fault.OutcomeUnknown,
			fenced: true, settled: true,
		},
		"refused, and the lock cannot be released": {
			prepare: func(w *backend) { w.commit, w.lockGone = []error{errGone, errLimit}, errGone }, fenced: true,
			settled: true,
		},
		"the lock cannot be released, and there is no loan": {
			prepare: func(w *backend) { notThere(forever...)(w); w.lockGone = errGone }, code: fault.Unavailable,
			older: fault.OutcomeUnknown, fenced: true, settled: true,
		},
		"refused, the lock cannot be released, and there is no loan": {
			prepare: func(w *backend) { notThere(errGone, errLimit)(w); w.lockGone = errGone }, code: fault.Invalid,
			older: fault.OutcomeUnknown, fenced: true, settled: true,
		},
		// by the version
		"refused after the item changed": {prepare: notThere(errGone, errChanged, errLimit), code: fault.Invalid},
		"refused after a later try was lost": {
			prepare: notThere(errChanged, errGone, errLimit), code: fault.Invalid, fenced: true, settled: true,
		},
		"refused after the queue changed": {
			prepare: notThere(errGone, errQueue, errLimit), code: fault.Invalid, fenced: true, settled: true,
		},
		"lent after the item changed": {prepare: notThere(errGone, errChanged)},
		"without a lock, a missing loan": {
			prepare: func(w *backend) { notThere(forever...)(w); w.set = off }, code: fault.Unavailable,
			older: fault.OutcomeUnknown, settled: true,
		},
		"without a lock, the loan is there": {
			prepare: func(w *backend) { w.commit, w.set = forever, off }, settled: true,
		},
		"without a lock, refused": {
			prepare: func(w *backend) { notThere(errGone, errQueue, errQueue)(w); w.set = off }, code: fault.RequestChanged,
			older: fault.OutcomeUnknown, settled: true,
		},
		"without a lock, refused, and an earlier try lent": {
			prepare: func(w *backend) { w.commit, w.set = []error{errGone, errQueue, errQueue}, off }, settled: true,
		},
		"without a lock, then refused under one": {
			prepare: func(w *backend) {
				notThere(errGone, errSettings, errLimit)(w)
				locked := w.set
				w.fresh, w.set = &locked, off
			}, code: fault.Invalid, older: fault.OutcomeUnknown, settled: true,
		},
		// the key lease fences
		"taken over": {
			prepare: func(w *backend) { notThere(errGone, errTaken)(w); w.set = off }, code: fault.KeyLeaseLost,
		},
		"taken over, and an earlier try lent": {
			prepare: func(w *backend) { w.commit, w.set = []error{errGone, errTaken}, off },
		},
		"the lock was lost for good": {
			prepare: func(w *backend) { notThere(errGone, errLost, errLost)(w); w.set.Waits = nil }, code: fault.LockNotAcquired,
			fenced: true, settled: true,
		},
		"given up by another request with the key": {
			prepare: notThere(errGone, fault.New(fault.GivenUp, "")), code: fault.GivenUp, fenced: true, settled: true,
		},
	}
	for name, tt := range tests {
		run := func(t *testing.T, older bool, code fault.Code) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newBackend()
				tt.prepare(w)
				w.older = older
				start := time.Now()
				lent, err := w.checkOut(t)
				if got := fault.CodeOf(err); got != code {
					t.Errorf("code %q, want %q (%v)", got, code, err)
				}
				if err == nil && (len(lent.Loan) == 0 || lent.Copy.Item.Status.Name != library.StatusCheckedOut) {
					t.Errorf("answered the loan %s of the item %+v", lent.Loan, lent.Copy.Item)
				}
				if took := time.Since(start); took > 9*time.Second {
					t.Errorf("answered after %s, when the connection is gone", took)
				}
				if fenced := len(w.durable) >= 1 && w.durable[0] == w.commits[0].LockID; fenced != tt.fenced {
					t.Errorf("released durably: %v, want the lock of the first commit: %t", w.durable, tt.fenced)
				}
				w.settled = slices.Compact(w.settled) // the same for all tries
				if settled := len(w.settled) == 1; settled != tt.settled {
					t.Errorf("settled: %v, want %t", w.settled, tt.settled)
				}
				for _, c := range w.commits {
					if string(c.Loan) != string(w.commits[0].Loan) {
						t.Errorf("the loan changed between tries: %s", c.Loan)
					}
				}
			})
		}
		t.Run(name, func(t *testing.T) { run(t, false, tt.code) })
		t.Run(name+", older storage", func(t *testing.T) { run(t, true, cmp.Or(tt.older, tt.code)) })
	}
}

// itemStorage answers commits with this item.
type itemStorage struct {
	*backend
	item string
}

func (s itemStorage) CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error) {
	result, err := s.backend.CheckOut(ctx, c)
	result.Item = json.RawMessage(s.item)
	return result, err
}

func TestCommit_ShowsTheItemAsLent(t *testing.T) {
	t.Parallel()
	for _, item := range []string{"", "null", `"no item"`, "{}", `{"status":null}`} {
		w := newBackend()
		w.Book.InTransitDestinationServicePointID = librarytest.DeskID
		service := w.service()
		service.Committer = itemStorage{w, item}
		lent, err := service.CheckOut(t.Context(), checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
		})
		got := lent.Copy.Item
		if err != nil || got.ID != librarytest.BookItemID || got.Status.Name != library.StatusCheckedOut ||
			got.InTransitDestinationServicePointID != "" {
			t.Errorf("storage answered the item %q: got %+v, %v", item, got, err)
		}
	}
}

// slowStorage answers the commits by its script; nil is no answer at all.
type slowStorage struct {
	*backend
	script []error
}

func (s *slowStorage) CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error) {
	if s.refusesTurn(c) {
		return schemas.CheckOutResult{}, errLost
	}
	var err error
	if len(s.script) > 0 {
		err, s.script = s.script[0], s.script[1:]
	}
	if err == nil {
		<-ctx.Done()
		err = ctx.Err()
	}
	return schemas.CheckOutResult{}, err
}

// Snapshot reads a changed item slowly.
func (s *slowStorage) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	if subjects.ItemID == "" {
		return s.backend.Snapshot(ctx, subjects)
	}
	select {
	case <-time.After(2 * time.Second):
		return s.backend.Snapshot(ctx, subjects)
	case <-ctx.Done():
		return library.Facts{}, ctx.Err()
	}
}

func TestCommit_IsAnsweredInTimeByASlowStorage(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]error{
		"no commit is answered":                 nil,
		"the item changed after a long silence": {nil, errChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newBackend()
				service := w.service()
				slow := &slowStorage{backend: w, script: script}
				service.Committer, service.Library = slow, slow
				start := time.Now()
				_, err := service.CheckOut(t.Context(), checkout.Request{
					ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
				})
				if !fault.Is(err, fault.Unavailable) {
					t.Errorf("got %v, want that nothing was lent", err)
				}
				if took := time.Since(start); took > 9*time.Second {
					t.Errorf("answered after %s, when the connection is gone", took)
				}
			})
		})
	}
}

func TestCommitted_AnswersLikeTheFirstTime(t *testing.T) {
	t.Parallel()
	w := newBackend()
	req := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID}
	lease := checkout.KeyLease{ID: librarytest.DeskID, LoanID: "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"}
	if _, done, err := w.service().Committed(t.Context(), req, lease.LoanID); done || err != nil {
		t.Fatalf("before: got %t, %v, want none", done, err)
	}
	first, err := w.service().Lend(t.Context(), req, lease)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.commits[0].KeyLeaseID; got != lease.ID {
		t.Errorf("the commit shows the key lease %q, want %q", got, lease.ID)
	}
	w.Book.Status.Name, w.onLoan = "Checked out", true
	w.RulesText = "no rules" // a loan that exists needs none
	again, done, err := w.service().Committed(t.Context(), req, lease.LoanID)
	if !done || err != nil {
		t.Fatalf("got %t, %v, want the loan", done, err)
	}
	if string(again.Loan) != string(first.Loan) || again.User.ID != first.User.ID || again.Group != first.Group ||
		again.Policy.Name != first.Policy.Name ||
		again.Copy.Instance.Title != first.Copy.Instance.Title || again.Copy.Item.Status.Name != "Checked out" {
		t.Errorf("got %+v, want %+v", again, first)
	}
	loanErr := func(code fault.Code) func() { return func() { w.loanErr = fault.New(code, "lost") } }
	for name, lose := range map[string]func(){
		"storage is away":                              loanErr(fault.Unavailable),
		"the standby does not confirm it":              loanErr(fault.Timeout),
		"storage is broken":                            loanErr(fault.Internal),
		"the loan is there, its policy cannot be read": func() { w.loanErr, w.Policy = nil, "{" },
	} {
		lose()
		_, done, err := w.service().Committed(t.Context(), req, lease.LoanID)
		var f *fault.Error
		if done || !errors.As(err, &f) || f.Code != fault.OutcomeUnknown ||
			*f.Details[0].Parameters[0].Value != lease.LoanID {
			t.Errorf("%s: got %t, %v, want %s with the loan's id", name, done, err, fault.OutcomeUnknown)
		}
	}
}

func TestCommit_IsNotRepeatedAfterALostKeyLease(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.commit = []error{errTaken}
	if _, err := w.checkOut(t); !fault.Is(err, fault.KeyLeaseLost) || len(w.commits) != 1 {
		t.Errorf("got %v after %d commits, want %s after one", err, len(w.commits), fault.KeyLeaseLost)
	}
	if len(w.released) != 1 || w.endings[0].Outcome != checkout.OutcomeTakenOver {
		t.Errorf("released %v, outcome %v", w.released, w.endings[0].Outcome)
	}
}
