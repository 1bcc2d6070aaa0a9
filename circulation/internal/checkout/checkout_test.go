package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas/fault"
)

var (
	errLost = fault.New(fault.LockLost, "lock is gone")
	errGone = fault.New(fault.Unavailable, "connection reset")
	// errFullDisk is an outage that is known to have changed nothing.
	errFullDisk = &fault.Error{Code: fault.Unavailable, Msg: "no space left", Unchanged: true}

	errHeld    = fault.New(fault.LockHeld, "Unable to acquire lock")
	errFull    = fault.New(fault.LockQueueFull, "too many wait")
	errDown    = fault.New(fault.Internal, "storage is broken")
	errTaken   = fault.New(fault.KeyLeaseLost, "another request has leased the key")
	errChanged = fault.New(fault.ItemChanged, "item has another version")
)

func TestCheckOut_LendsUnderTheLockAndReleasesIt(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.Book.InTransitDestinationServicePointID = librarytest.OtherID // storage takes it out
	w.Patron.Type = "dcb"                                           // a patron of another library
	w.onStep = func(s checkout.Step) {
		if s == checkout.Locked && !slices.Equal(w.waiting, []int{1, -1}) {
			t.Errorf("observed %v when the lock was granted, want one wait and its end", w.waiting)
		}
	}
	lent, err := w.checkOut(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []checkout.Step{checkout.Validated, checkout.Locked, checkout.Committed, checkout.Released}
	if !slices.Equal(w.steps, want) {
		t.Errorf("steps %v, want %v", w.steps, want)
	}
	if len(w.commits) != 1 || w.commits[0].LockID == "" || w.commits[0].SettingsVersion != "" ||
		w.commits[0].ItemVersion != 4 {
		t.Errorf("committed %+v", w.commits)
	}
	if !slices.Equal(w.released, []string{w.commits[0].LockID}) {
		t.Errorf("released %v, held %s", w.released, w.commits[0].LockID)
	}
	asked := w.requests[0]
	if asked.UserID != librarytest.AnnID || asked.TTL != 3*time.Second {
		t.Errorf("asked for %+v", asked)
	}
	if wait := w.waits[0]; wait.AcquisitionID != asked.AcquisitionID || wait.UserID != asked.UserID ||
		wait.ServicePointID != librarytest.DeskID || wait.Began.IsZero() {
		t.Errorf("observed %+v, asked for %+v", wait, asked)
	}
	var loan map[string]any
	if err := json.Unmarshal(lent.Loan, &loan); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"userId": librarytest.AnnID, "itemId": librarytest.BookItemID, "loanDate": "2026-03-01T10:00:00.000Z",
		"dueDate": "2026-03-15T10:00:00.000Z",
		"action":  "checkedout", "loanPolicyId": librarytest.ThreeID, "checkoutServicePointId": librarytest.DeskID,
		"itemEffectiveLocationIdAtCheckOut": librarytest.MainID,
		"isDcb":                             true,
		"status":                            map[string]any{"name": "Open"}, "itemStatus": "Checked out",
		"patronGroupIdAtCheckout": librarytest.AdultsID,
	} {
		if !reflect.DeepEqual(loan[key], want) {
			t.Errorf("%s is %v, want %v", key, loan[key], want)
		}
	}
	if lent.Copy.Item.Status.Name != "Checked out" || lent.Copy.Item.InTransitDestinationServicePointID != "" ||
		lent.Copy.Instance.Title != "Moby Dick" || lent.Copy.Item.Status.Date != storedDate || lent.Group.Group != "adults" ||
		lent.User.ID != librarytest.AnnID || lent.Policy.ID != librarytest.ThreeID {
		t.Errorf("answered %+v", lent)
	}
}

func TestCheckOut_TakesNoLockWithTheFeatureOff(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.set = settings.Settings{Version: "7"}
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	if len(w.requests) != 0 || w.commits[0].LockID != "" || len(w.commits[0].Limits) > 0 ||
		w.commits[0].SettingsVersion != "7" {
		t.Errorf("asked for %v, committed %+v", w.requests, w.commits[0])
	}
}

func TestCheckOut_LendsNothingUnderUnreadSettings(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.set = settings.Settings{}
	if _, err := w.checkOut(t); !fault.Is(err, fault.Unavailable) || len(w.commits) != 0 {
		t.Errorf("got %v, committed %+v", err, w.commits)
	}
}

func TestCheckOut_RefusesALimitReachedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.open = []int{2, 3} // validation sees 2, the recount 3
	_, err := w.checkOut(t)
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Details) != 1 || f.Details[0].Code != "ITEM_LIMIT_MATERIAL_TYPE" {
		t.Fatalf("got %v", err)
	}
	if got := describeDetails(err); !slices.Equal(got, []string{
		"Patron has reached maximum limit of 3 items for material type [itemLimitBlock " + mayLimit + "]",
	}) ||
		*f.Details[0].Parameters[0].Value != "book" || *f.Details[0].Parameters[1].Value != "3" {
		t.Errorf("got %q with %+v, want the refusal of the first count", got, f.Details[0].Parameters)
	}
	if len(w.commits) != 1 || len(w.durable) != 0 || !slices.Equal(w.released, []string{w.commits[0].LockID}) {
		t.Errorf("%d commits, released %v, durably %v", len(w.commits), w.released, w.durable)
	}
	if e := w.endings[0]; e.Outcome != checkout.OutcomeLimitReached || e.Repeats != 0 {
		t.Errorf("ended as %+v", e)
	}
}

func TestAcquire(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		held    int
		acquire []error
		waits   []time.Duration
		code    fault.Code
		tries   int
		took    time.Duration
	}{
		"free at once":                          {tries: 1},
		"held once":                             {held: 1, tries: 2, took: 500 * time.Millisecond},
		"free at the last try":                  {held: 3, tries: 4, took: 2 * time.Second},
		"never free":                            {held: 9, tries: 4, took: 2 * time.Second, code: fault.LockNotAcquired},
		"no waits configured":                   {held: 9, waits: []time.Duration{}, tries: 1, code: fault.LockNotAcquired},
		"an early answer is waited out":         {acquire: []error{errHeld, errFull}, tries: 3, took: time.Second},
		"a lost answer is asked for again":      {acquire: []error{errGone}, tries: 2},
		"two lost answers end it":               {acquire: []error{errGone, errGone}, tries: 2, code: fault.Unavailable},
		"a broken storage ends it at once":      {acquire: []error{errDown}, tries: 1, code: fault.Internal},
		"a lost answer does not cost more time": {acquire: []error{errHeld, errGone}, tries: 3, took: 500 * time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newBackend()
				w.held, w.acquire = tt.held, tt.acquire
				if tt.waits != nil {
					w.set.Waits = tt.waits
				}
				start := time.Now()
				_, err := w.checkOut(t)
				if got := fault.CodeOf(err); got != tt.code {
					t.Errorf("code %q, want %q", got, tt.code)
				}
				if took := time.Since(start); took != tt.took || len(w.requests) != tt.tries {
					t.Errorf("%d tries in %s, want %d in %s", len(w.requests), took, tt.tries, tt.took)
				}
				for _, r := range w.requests {
					if r.AcquisitionID != w.requests[0].AcquisitionID {
						t.Errorf("acquisition ids differ: %v", w.requests)
					}
				}
				if lentOrRefused := tt.code == ""; lentOrRefused != (len(w.commits) == 1) || len(w.released) != len(w.commits) {
					t.Errorf("%d commits, %d releases", len(w.commits), len(w.released))
				}
			})
		})
	}
}

func TestAcquire_RefusesInFoliosWords(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.held, w.set.Waits = 9, nil
	_, err := w.checkOut(t)
	var f *fault.Error
	if !errors.As(err, &f) || f.Details[0].Message != "unable to acquire lock" ||
		f.Details[0].Code != "LOCK_NOT_ACQUIRED" {
		t.Errorf("got %v", err)
	}
}

func TestCheckOut_TakesALostLockAgainForTheSameLoan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBackend()
		w.commit = []error{errLost}
		if _, err := w.checkOut(t); err != nil {
			t.Fatal(err)
		}
		if len(w.commits) != 2 || string(w.commits[0].Loan) != string(w.commits[1].Loan) ||
			w.commits[0].LockID == w.commits[1].LockID {
			t.Errorf("committed %+v", w.commits)
		}
		if len(w.commits[0].Limits) != 1 || len(w.commits[1].Limits) != 1 {
			t.Errorf("committed %+v, want a count under each lock", w.commits)
		}
		if len(w.released) != 2 {
			t.Errorf("released %v", w.released)
		}
	})
}

func TestCheckOut_EndsWithTheBudgetOfALostLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBackend()
		w.onStep = func(s checkout.Step) {
			if s == checkout.Locked {
				<-time.After(700 * time.Millisecond) // a pause between grant and commit
			}
		}
		w.commit = []error{errLost, errLost, errLost, errLost, errLost}
		if _, err := w.checkOut(t); !fault.Is(err, fault.LockNotAcquired) {
			t.Errorf("got %v", err)
		}
		if len(w.commits) != 3 {
			t.Errorf("%d commits within a budget of 2 s and 700 ms each", len(w.commits))
		}
	})
}

func TestCheckOut_FollowsASwitchUnderWay(t *testing.T) {
	t.Parallel()
	w := newBackend()
	on := w.set
	w.set = settings.Settings{Version: "7", Waits: on.Waits}
	w.fresh = &on
	w.commit = []error{fault.New(fault.SettingsChanged, "settings have version 8")}
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	if len(w.commits) != 2 || w.commits[0].SettingsVersion != "7" || w.commits[1].LockID == "" {
		t.Errorf("committed %+v", w.commits)
	}
}

func TestCheckOut_ReadsAChangedItemOnce(t *testing.T) {
	t.Parallel()
	t.Run("still there", func(t *testing.T) {
		t.Parallel()
		w := newBackend()
		w.commit = []error{errChanged}
		w.onStep = func(s checkout.Step) {
			if s == checkout.Locked {
				w.Book.Version = 5
			}
		}
		if _, err := w.checkOut(t); err != nil || w.commits[1].ItemVersion != 5 {
			t.Errorf("got %v, committed %+v", err, w.commits)
		}
	})
	t.Run("lent to another patron", func(t *testing.T) {
		t.Parallel()
		w := newBackend()
		w.commit = []error{errChanged}
		w.onStep = func(s checkout.Step) {
			if s == checkout.Locked {
				w.Book.Status.Name, w.onLoan = "Checked out", true
			}
		}
		_, err := w.checkOut(t)
		if got := librarytest.Messages(err); !slices.Equal(got, []string{"Item is already checked out"}) {
			t.Errorf("got %v", got)
		}
		if len(w.commits) != 1 || len(w.released) != 1 {
			t.Errorf("%d commits, %d releases", len(w.commits), len(w.released))
		}
	})
	t.Run("changed twice", func(t *testing.T) {
		t.Parallel()
		w := newBackend()
		w.commit = []error{errChanged, errChanged}
		if _, err := w.checkOut(t); !fault.Is(err, fault.ItemChanged) || len(w.released) != 1 {
			t.Errorf("got %v, released %v", err, w.released)
		}
	})
}

func TestCheckOut_OfAMachineThatLeaves(t *testing.T) {
	t.Parallel()
	leaveAt := func(t *testing.T, at checkout.Step) (*backend, error) {
		t.Helper()
		w := newBackend()
		w.takes = at == checkout.Validated
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		w.onStep = func(s checkout.Step) {
			if s == at {
				leave()
			}
		}
		_, err := w.service().CheckOut(ctx, checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
		})
		return w, err
	}
	t.Run("before a commit that takes the lock nothing is lent", func(t *testing.T) {
		t.Parallel()
		w, err := leaveAt(t, checkout.Validated)
		if !errors.Is(err, context.Canceled) || len(w.commits)+len(w.requests) != 0 {
			t.Errorf("got %v, %d commits, asked for %v", err, len(w.commits), w.requests)
		}
	})
	t.Run("before the commit nothing is lent and the lock is released", func(t *testing.T) {
		t.Parallel()
		w, err := leaveAt(t, checkout.Locked)
		if !errors.Is(err, context.Canceled) || len(w.commits) != 0 || len(w.released) != 1 {
			t.Errorf("got %v, %d commits, released %v", err, len(w.commits), w.released)
		}
		if w.endings[0].Outcome != checkout.OutcomeClientLeft {
			t.Errorf("outcome %v", w.endings[0].Outcome)
		}
	})
	t.Run("after the commit the loan stands and the lock is released", func(t *testing.T) {
		t.Parallel()
		w, err := leaveAt(t, checkout.Committed)
		if err != nil || len(w.commits) != 1 || len(w.released) != 1 {
			t.Errorf("got %v, %d commits, released %v", err, len(w.commits), w.released)
		}
	})
}

func TestCheckOut_LeavesTheReleaseToTheCommit(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.releases = true
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	if len(w.released) != 0 || !w.commits[0].ReleaseLock || w.steps[len(w.steps)-1] != checkout.Released {
		t.Errorf("released %v, committed %+v, steps %v; want the commit to release", w.released, w.commits[0], w.steps)
	}
}

func TestCheckOut_ReleasesAfterACommitThatDidNot(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.releases = true
	w.commit = []error{fault.Validation(fault.Refusal("", "refused"))}
	if _, err := w.checkOut(t); !fault.Is(err, fault.Invalid) || len(w.released) != 1 {
		t.Errorf("got %v, released %v, want the lock of a refused commit to be released", err, w.released)
	}
}

func TestCheckOut_AsksForNoReleaseWithoutTheLock(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.set = settings.Settings{Version: "7"}
	if _, err := w.checkOut(t); err != nil || w.commits[0].ReleaseLock {
		t.Errorf("got %v, committed %+v, want no release", err, w.commits[0])
	}
}
