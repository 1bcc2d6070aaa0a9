package admission_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/admission"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const wait = 3 * time.Second

// door is a line with the results of the check-outs that entered it.
type door struct {
	*admission.Line
	t *testing.T

	mu      sync.Mutex
	refused []admission.Result
	came    []string          // the names of the admitted check-outs, in order
	leave   map[string]func() // by name
	errs    map[string]error  // of the refused check-outs
	waited  map[string]time.Duration
}

func newDoor(t *testing.T, places int) *door {
	t.Helper()
	d := &door{t: t, leave: map[string]func(){}, errs: map[string]error{}, waited: map[string]time.Duration{}}
	d.Line = admission.New(admission.Options{
		Places: places, Wait: wait,
		Entered: func(r admission.Result, _ time.Duration) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if r != admission.Admitted {
				d.refused = append(d.refused, r)
			}
		},
	})
	t.Cleanup(func() { <-time.After(2 * wait) }) // after a failure, until the line is empty
	return d
}

func inTenant(t *testing.T, name string) context.Context {
	t.Helper()
	id, err := okapi.ParseTenant(name)
	if err != nil {
		t.Fatal(err)
	}
	return okapi.WithTenant(t.Context(), id)
}

// come starts a named check-out of a patron, and waits until it has a place, waits for one, or was
// refused.
func (d *door) come(ctx context.Context, patron, name string) {
	go func() {
		began := time.Now()
		leave, err := d.Enter(ctx, patron)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.waited[name] = time.Since(began)
		if err != nil {
			d.errs[name] = err
			return
		}
		d.came, d.leave[name] = append(d.came, name), leave
	}()
	synctest.Wait()
}

// goOut frees the place of a check-out.
func (d *door) goOut(name string) {
	d.t.Helper()
	leave := d.leave[name]
	if leave == nil {
		d.t.Fatalf("%s is not admitted, but %v", name, d.came)
	}
	leave()
	synctest.Wait()
}

func (d *door) want(t *testing.T, admitted, waiting int, came ...string) {
	t.Helper()
	if a, w := d.Counts(); a != admitted || w != waiting {
		t.Errorf("%d are admitted and %d wait, want %d and %d", a, w, admitted, waiting)
	}
	if !slices.Equal(d.came, came) {
		t.Errorf("admitted were %v, want %v", d.came, came)
	}
	if n := d.Patrons(); n > admitted+waiting {
		t.Errorf("%d patrons are known", n)
	}
}

// wantRefused expects that a check-out was refused after that time, and no other.
func (d *door) wantRefused(t *testing.T, name string, after time.Duration, why admission.Result) {
	t.Helper()
	var f *fault.Error
	if !errors.As(d.errs[name], &f) || f.Code != fault.Overloaded || f.RetryAfter != wait {
		t.Errorf("got %v, want %s and a retry after %s", d.errs[name], fault.Overloaded, wait)
	}
	if d.waited[name] != after || !slices.Equal(d.refused, []admission.Result{why}) {
		t.Errorf("refused %v, after %s, want %s after %s", d.refused, d.waited[name], why, after)
	}
}

func TestLine_Enter(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(t *testing.T){
		"check-outs are admitted in the order of arrival": func(t *testing.T) {
			d := newDoor(t, 1)
			for _, patron := range []string{"a", "b", "c"} {
				d.come(inTenant(t, "diku"), patron, patron)
			}
			d.want(t, 1, 2, "a")
			d.goOut("a")
			d.want(t, 1, 1, "a", "b")
			d.goOut("b")
			d.goOut("c")
			d.want(t, 0, 0, "a", "b", "c")
		},
		"a place that is freed twice is one place": func(t *testing.T) {
			d := newDoor(t, 2)
			d.come(inTenant(t, "diku"), "a", "a")
			d.come(inTenant(t, "diku"), "b", "b")
			d.goOut("a")
			d.goOut("a")
			d.come(inTenant(t, "diku"), "c", "c")
			d.come(inTenant(t, "diku"), "d", "d")
			d.want(t, 2, 1, "a", "b", "c")
		},
		"patrons take turns": func(t *testing.T) {
			d := newDoor(t, 1)
			for _, name := range []string{"a1", "a2", "a3", "b1", "b2"} {
				d.come(inTenant(t, "diku"), name[:1], name)
			}
			for _, name := range []string{"a1", "a2", "b1", "a3", "b2"} {
				d.goOut(name)
			}
			d.want(t, 0, 0, "a1", "a2", "b1", "a3", "b2")
		},
		"a patron occupies an eighth of the places": func(t *testing.T) {
			d := newDoor(t, 16)
			for _, name := range []string{"a1", "a2", "a3", "b1"} {
				d.come(inTenant(t, "diku"), name[:1], name)
			}
			d.want(t, 3, 1, "a1", "a2", "b1")
			d.goOut("b1") // frees a place, which is not for the first patron
			d.want(t, 2, 1, "a1", "a2", "b1")
			d.goOut("a1")
			d.want(t, 2, 0, "a1", "a2", "b1", "a3")
		},
		"a barcode in capitals is the same patron's, one in another tenant is not": func(t *testing.T) {
			d := newDoor(t, 4)
			d.come(inTenant(t, "diku"), "p-1", "first")
			d.come(inTenant(t, "diku"), "P-1", "second")
			d.come(inTenant(t, "other"), "p-1", "third")
			d.want(t, 2, 1, "first", "third")
		},
		"a wait ends without a place": func(t *testing.T) {
			d := newDoor(t, 1)
			d.come(inTenant(t, "diku"), "a", "a")
			d.come(inTenant(t, "diku"), "b", "b")
			<-time.After(wait)
			synctest.Wait()
			d.want(t, 1, 0, "a")
			d.wantRefused(t, "b", wait, admission.WaitOver)
			d.goOut("a")
			d.want(t, 0, 0, "a")
		},
		"a caller that leaves loses its place in line": func(t *testing.T) {
			d := newDoor(t, 1)
			d.come(inTenant(t, "diku"), "a", "a")
			ctx, cancel := context.WithCancel(inTenant(t, "diku"))
			d.come(ctx, "b", "b")
			d.come(inTenant(t, "diku"), "c", "c")
			cancel()
			synctest.Wait()
			if !errors.Is(d.errs["b"], context.Canceled) || len(d.refused) > 0 {
				t.Errorf("the caller that left got %v, and refused were %v", d.errs["b"], d.refused)
			}
			d.want(t, 1, 1, "a")
			d.goOut("a")
			d.want(t, 1, 0, "a", "c")
		},
		"no place is for a caller without a library, or one that has left": func(t *testing.T) {
			d := newDoor(t, 1)
			d.come(t.Context(), "a", "a")
			left, leave := context.WithCancel(inTenant(t, "diku"))
			leave()
			for range 20 {
				d.come(left, "b", "b")
			}
			if d.want(t, 0, 0); d.errs["a"] == nil || !errors.Is(d.errs["b"], context.Canceled) {
				t.Errorf("got %v and %v", d.errs["a"], d.errs["b"])
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, f)
		})
	}
}

// Check-outs come, wait, leave and end at random. The number that runs never exceeds the number of
// places, and in the end the line is empty.
func TestLine_BoundsPlacesUnderContention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, contend)
}

func contend(t *testing.T) {
	const places, patrons, each = 16, 12, 40
	var working, most atomic.Int64
	var ofPatron, mostOfPatron [patrons]atomic.Int64
	l := admission.New(admission.Options{
		Places: places, Wait: 20 * time.Millisecond, Entered: func(admission.Result, time.Duration) {},
	})
	ctx := inTenant(t, "diku")
	var wg sync.WaitGroup
	for i := range patrons * each {
		wg.Go(func() {
			patron := i % patrons
			cctx, cancel := context.WithTimeout(ctx, time.Duration(rand.N(30))*time.Millisecond)
			defer cancel()
			leave, err := l.Enter(cctx, strconv.Itoa(patron))
			if err != nil {
				return
			}
			defer leave()
			raise(&most, working.Add(1))
			raise(&mostOfPatron[patron], ofPatron[patron].Add(1))
			<-time.After(time.Duration(rand.N(3)) * time.Millisecond)
			ofPatron[patron].Add(-1)
			working.Add(-1)
		})
	}
	wg.Wait()
	if most.Load() != places {
		t.Errorf("%d worked at once, want %d", most.Load(), places)
	}
	for i := range mostOfPatron {
		if n := mostOfPatron[i].Load(); n > places/8 {
			t.Errorf("%d of one patron worked at once, want at most %d", n, places/8)
		}
	}
	if admitted, waiting := l.Counts(); admitted != 0 || waiting != 0 || l.Patrons() != 0 {
		t.Errorf("%d are admitted, %d wait and %d patrons are known in the end", admitted, waiting, l.Patrons())
	}
}

// A place becomes free at the moment at which a wait for it ends. Either that check-out
// gets the place, or the place stays free.
func TestLine_KeepsNoPlaceAfterAWaitEnds(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(cancel func()){
		"as its caller leaves": func(cancel func()) { cancel() },
		"as its time is over":  func(func()) { <-time.After(wait) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 200 { // the scheduler decides which of the two comes first
				synctest.Test(t, func(t *testing.T) {
					d := newDoor(t, 1)
					d.come(inTenant(t, "diku"), "a", "a")
					ctx, cancel := context.WithCancel(inTenant(t, "diku"))
					defer cancel()
					d.come(ctx, "b", "b")
					stop(cancel)
					d.goOut("a")
					if d.leave["b"] != nil {
						d.goOut("b")
					}
					d.want(t, 0, 0, d.came...)
				})
			}
		})
	}
}

// raise makes most at least n.
func raise(most *atomic.Int64, n int64) {
	for {
		old := most.Load()
		if n <= old || most.CompareAndSwap(old, n) {
			return
		}
	}
}
