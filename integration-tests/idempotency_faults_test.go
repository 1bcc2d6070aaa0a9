package integration_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

// crashAt simulates a crash of instance 0: at the step it cuts the instance off from storage and ends
// the check-out, so that no lock is released.
func crashAt(at circulation.Step, link **link) func(context.Context, int, circulation.Step) {
	return atStep(0, at, func() {
		(*link).addFault(linkFault{times: always, handle: loseRequest, optional: true})
		panic("the instance crashes")
	})
}

func TestIdempotencyKey_FinishesACrashedCheckOut(t *testing.T) {
	t.Parallel()
	for _, step := range []circulation.Step{circulation.Validated, circulation.Locked, circulation.Committed} {
		for _, enabled := range []bool{true, false} {
			if !enabled && step == circulation.Locked {
				continue
			}
			waits := step == circulation.Locked // the others save the time that the lease of the key outlives its holder
			t.Run(fmt.Sprintf("%s, lock enabled is %t", step, enabled), func(t *testing.T) {
				t.Parallel()
				var dead *link
				start := startPairWithLinks
				if step == circulation.Locked {
					start = startPairThatAcquires
				}
				p, links := start(t, stack.Options{
					Circulations: 2, CirculationEnv: enableLock("LOCK_TTL_MS=1000",
						fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", enabled)),
					OnStep: crashAt(step, &dead),
				}, 1)
				dead = links[0]
				id, patron := p.addPatron(t)
				books := p.addBooks(t, 3)
				_, other := p.addPatron(t)
				usual := readObject(t, p.lendWithKey(t, 1, "usual", p.newCheckOut(books[0], other)), http.StatusCreated)

				if a := p.lendWithKey(t, 0, "k", p.newCheckOut(books[1], patron)); a.Status != http.StatusInternalServerError {
					t.Fatalf("the instance did not crash: %d %s", a.Status, a.Body)
				}
				if !waits {
					p.lapseKeyLease(t, "k")
				}
				repeat := p.lendWithKey(t, 1, "k", p.newCheckOut(books[1], patron))
				loan := readObject(t, repeat, http.StatusCreated)
				if got, want := slices.Sorted(maps.Keys(loan)), slices.Sorted(maps.Keys(usual)); !slices.Equal(got, want) {
					t.Errorf("the answer has %v, want the properties of any check-out: %v", got, want)
				}
				if status := readPart(loan, "item.status.name"); status != "Checked out" {
					t.Errorf("the item's status is %v, want Checked out", status)
				}
				checkSameAnswer(t, "another repeat", p.lendWithKey(t, 1, "k", p.newCheckOut(books[1], patron)), repeat)
				got := p.readState(t, id, books[1])
				got.Locks = 0 // the lock of a crashed instance lasts for its TTL
				if got != lentOnce {
					t.Errorf("left %+v, want %+v", got, lentOnce)
				}
				checkAtTheLimit(t, p.lendBook(t, 1, books[2], patron))
			})
		}
	}
}

// startPairThatSleeps starts a pair whose instance 0 sleeps at a step, once, until woken.
func startPairThatSleeps(t *testing.T, at circulation.Step) (p *pair, links []*link, asleep <-chan struct{},
	wake func(),
) {
	t.Helper()
	sleeping, woken := make(chan struct{}), make(chan struct{})
	wake = sync.OnceFunc(func() { close(woken) })
	sleep := sync.OnceFunc(func() {
		close(sleeping)
		<-woken
	})
	p, links = startPairThatAcquires(t, stack.Options{
		Circulations: 2, CirculationEnv: enableLock("LOCK_TTL_MS=1000"),
		OnStep: atStep(0, at, sleep),
	}, 1)
	t.Cleanup(wake)
	return p, links, sleeping, wake
}

// A key lease lapses on a machine that stalls for seconds, which is correct. The test then
// starts again.
func TestIdempotencyKey_RepeatWaits(t *testing.T) {
	t.Parallel()
	for range 10 {
		if checkRepeatWaits(t) {
			return
		}
	}
	t.Error("the lease was never renewed in time")
}

// checkRepeatWaits reports whether the lease was renewed in time. If not, the repeat may
// be answered first.
func checkRepeatWaits(t *testing.T) bool {
	t.Helper()
	p, _, asleep, wake := startPairThatSleeps(t, circulation.Locked)
	id, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	first := p.startLendingWithKey(t, 0, "k", p.newCheckOut(book, patron))
	<-asleep
	repeat := p.startLendingWithKey(t, 1, "k", p.newCheckOut(book, patron))
	inTime := p.waitForRenewals(t, 4, repeat) // longer than a lease lives
	select {
	case a := <-repeat.answered:
		if inTime {
			t.Fatalf("the repeat did not wait: %d %s", a.Status, a.Body)
		}
		wake()
		first.awaitAnswer()
		return false
	default:
	}
	wake()
	a := first.awaitAnswer()
	readObject(t, a, http.StatusCreated)
	checkSameAnswer(t, "the repeat", repeat.awaitAnswer(), a)
	if got := p.readState(t, id, book); got != lentOnce {
		t.Errorf("left %+v, want %+v", got, lentOnce)
	}
	return true
}

// waitForRenewals waits until key leases were renewed n times, or the repeat is answered. It
// reports whether at most two seconds passed between renewals; a lease lives for three.
func (p *pair) waitForRenewals(t *testing.T, n float64, repeat lending) bool {
	t.Helper()
	const renewed = `http_requests_total{code="",method="PUT",route="` + keysPath + `/:claimId",status="204"}`
	seen, last, longest := 0.0, time.Now(), time.Duration(0)
	waitUntil(t, patience, "renewals of the lease", func() bool {
		longest = max(longest, time.Since(last))
		if now := sumMetric(t, p, renewed); now > seen {
			seen, last = now, time.Now()
		}
		return seen >= n || len(repeat.answered) > 0
	})
	return longest <= 2*time.Second
}

func TestIdempotencyKey_TakenOverInstanceAnswersAlike(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		active bool // the patron is active when the repeat comes
		status int
		leaves state
	}{
		"lent":    {active: true, status: http.StatusCreated, leaves: lentOnce},
		"refused": {active: false, status: http.StatusUnprocessableEntity, leaves: untouched},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, links, asleep, wake := startPairThatSleeps(t, circulation.Locked)
			id, patron := p.addPatron(t)
			book := p.addBooks(t, 1)[0]
			links[0].addFault(linkFault{ // the lease cannot be renewed, if that is due
				method: http.MethodPut, path: keysPath, times: always, handle: loseRequest, optional: true,
			})
			slept := p.startLendingWithKey(t, 0, "k", p.newCheckOut(book, patron))
			<-asleep
			user := p.readRecord(t, "/users/"+id)
			user["active"] = tt.active
			if a := callEndpoint(t, p.Storage, http.MethodPut, "/users/"+id, user); a.Status != http.StatusNoContent {
				t.Fatalf("changing the patron: %d %s", a.Status, a.Body)
			}
			p.lapseKeyLease(t, "k")
			repeat := p.lendWithKey(t, 1, "k", p.newCheckOut(book, patron))
			if repeat.Status != tt.status {
				t.Errorf("the repeat was answered %d %s, want %d", repeat.Status, repeat.Body, tt.status)
			}
			links[0].removeFaults()
			wake()
			checkSameAnswer(t, "the sleeper", slept.awaitAnswer(), repeat)
			got := p.readState(t, id, book)
			if got.Locks = 0; got != tt.leaves {
				t.Errorf("left %+v, want %+v", got, tt.leaves)
			}
		})
	}
}

func TestIdempotencyKey_StorageFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fault  linkFault
		status int
		leaves state
	}{
		{
			name:   "a lease with a lost answer is repeated",
			fault:  linkFault{method: http.MethodPost, path: keysPath, times: 1, handle: loseAnswer},
			status: http.StatusCreated, leaves: lentOnce,
		},
		{
			name:   "an unreachable lease lends nothing",
			fault:  linkFault{method: http.MethodPost, path: keysPath, times: always, handle: loseRequest},
			status: http.StatusServiceUnavailable, leaves: untouched,
		},
		{
			name: "a lease that fails lends nothing",
			fault: linkFault{
				method: http.MethodPost, path: keysPath, times: always, handle: answerWith(http.StatusInternalServerError),
			},
			status: http.StatusInternalServerError, leaves: untouched,
		},
		{
			name:   "an answer that cannot be stored is sent",
			fault:  linkFault{method: http.MethodPut, path: keysPath, times: always, handle: loseRequest},
			status: http.StatusCreated, leaves: lentOnce,
		},
		{
			name:   "an answer stored without confirmation is sent",
			fault:  linkFault{method: http.MethodPut, path: keysPath, times: always, handle: loseAnswer},
			status: http.StatusCreated, leaves: lentOnce,
		},
		{
			name:   "a commit that never arrives is sent by the repeat",
			fault:  linkFault{method: http.MethodPost, path: commitPath, times: always, handle: loseRequest},
			status: http.StatusServiceUnavailable, leaves: untouched,
		},
		{
			name:   "a commit without any answer is read back",
			fault:  linkFault{method: http.MethodPost, path: commitPath, times: always, handle: loseAnswer},
			status: http.StatusCreated, leaves: lentOnce,
		},
	}
	p, links := startPairWithLinks(t, stack.Options{Circulations: len(tests), CirculationEnv: shortWait}, 1)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			id, patron := p.addPatron(t)
			book, key := p.addBooks(t, 1)[0], tt.name
			links[i].addFault(tt.fault)
			first := p.lendWithKey(t, i, key, p.newCheckOut(book, patron))
			if first.Status != tt.status {
				t.Errorf("answered %d %s, want %d", first.Status, first.Body, tt.status)
			}
			if got := p.readState(t, id, book); got != tt.leaves {
				t.Errorf("left %+v, want %+v", got, tt.leaves)
			}
			links[i].removeFaults()
			repeat := p.lendWithKey(t, i, key, p.newCheckOut(book, patron))
			loan := readObject(t, repeat, http.StatusCreated)
			if first.Status == http.StatusCreated && first.Header.Get("Location") != repeat.Header.Get("Location") {
				t.Errorf("the repeat lent %v, the first %s", loan["id"], first.Header.Get("Location"))
			}
			if got := p.readState(t, id, book); got != lentOnce {
				t.Errorf("the repeat left %+v, want %+v", got, lentOnce)
			}
		})
	}
}
