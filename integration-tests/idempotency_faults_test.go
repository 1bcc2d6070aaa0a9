package integration_test

import (
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

// dies makes an instance lose its storage at a step and then breaks the check-out
// off, so that nothing is released or given up: the instance is as good as dead.
func dies(at circulation.Step, link **link) circulation.Observer {
	return stepHook{step: at, do: func() {
		(*link).add(linkFault{times: always, befall: loseRequest})
		panic("the instance dies")
	}}
}

func TestARepeatFinishesWhatADeadInstanceBegan(t *testing.T) {
	t.Parallel()
	for _, step := range []circulation.Step{circulation.Validated, circulation.Locked, circulation.Recounted, circulation.Committed} {
		for _, enabled := range []bool{true, false} {
			if !enabled && (step == circulation.Locked || step == circulation.Recounted) {
				continue
			}
			t.Run(fmt.Sprintf("%s, lock enabled is %t", step, enabled), func(t *testing.T) {
				t.Parallel()
				var dead *link
				p, links := linked(t, stack.Options{
					Circulations: 2, CirculationEnv: on("LOCK_TTL_MS=1000", fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", enabled)),
					Observe: func(i int) circulation.Observer {
						if i == 1 {
							return circulation.NoObserver{}
						}
						return dies(step, &dead)
					},
				}, 1)
				dead = links[0]
				id, patron := p.patron(t)
				books := p.books(t, 2)
				_, other := p.patron(t)
				usual := object(t, p.keyed(t, 1, "usual", p.checkOut(books[0], other)), http.StatusCreated)

				if a := p.keyed(t, 0, "k", p.checkOut(books[1], patron)); a.Status != http.StatusInternalServerError {
					t.Fatalf("the instance did not die: %d %s", a.Status, a.Body)
				}
				repeat := p.keyed(t, 1, "k", p.checkOut(books[1], patron))
				loan := object(t, repeat, http.StatusCreated)
				if got, want := slices.Sorted(maps.Keys(loan)), slices.Sorted(maps.Keys(usual)); !slices.Equal(got, want) {
					t.Errorf("the answer has %v, want what a check-out is always answered with: %v", got, want)
				}
				if status := part(loan, "item.status.name"); status != "Checked out" {
					t.Errorf("the item is answered as %v", status)
				}
				sameAnswer(t, "another repeat", p.keyed(t, 1, "k", p.checkOut(books[1], patron)), repeat)
				got := p.state(t, id, books[1])
				got.Locks = 0 // a dead instance's lock lasts for its TTL
				if got != lentOnce {
					t.Errorf("left %+v, want %+v", got, lentOnce)
				}
			})
		}
	}
}

// sleeper is a pair whose instance 0 sleeps at a step, once, until woken.
func sleeper(t *testing.T, at circulation.Step) (p *pair, links []*link, asleep <-chan struct{}, wake func()) {
	t.Helper()
	sleeping, woken := make(chan struct{}), make(chan struct{})
	wake = sync.OnceFunc(func() { close(woken) })
	sleep := sync.OnceFunc(func() {
		close(sleeping)
		<-woken
	})
	p, links = linked(t, stack.Options{
		Circulations: 2, CirculationEnv: on("LOCK_TTL_MS=1000"),
		Observe: func(i int) circulation.Observer {
			if i == 1 {
				return circulation.NoObserver{}
			}
			return stepHook{step: at, do: sleep}
		},
	}, 1)
	t.Cleanup(wake)
	return p, links, sleeping, wake
}

// A machine that stands still for seconds lets a claim lapse, and rightly so. Then
// the test begins anew.
func TestARepeatWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	for range 10 {
		if repeatWaits(t) {
			return
		}
	}
	t.Error("the claim was never renewed in time")
}

// repeatWaits is false when the repeat was answered first because the claim was
// not renewed in time.
func repeatWaits(t *testing.T) bool {
	t.Helper()
	p, _, asleep, wake := sleeper(t, circulation.Recounted)
	id, patron := p.patron(t)
	book := p.books(t, 1)[0]
	first := p.keyedLater(t, 0, "k", p.checkOut(book, patron))
	<-asleep
	repeat := p.keyedLater(t, 1, "k", p.checkOut(book, patron))
	inTime := p.renewals(t, 4, repeat) // which is longer than a claim lives
	select {
	case a := <-repeat.answered:
		if inTime {
			t.Fatalf("the repeat did not wait: %d %s", a.Status, a.Body)
		}
		wake()
		first.wait()
		return false
	default:
	}
	wake()
	a := first.wait()
	object(t, a, http.StatusCreated)
	sameAnswer(t, "the repeat", repeat.wait(), a)
	if got := p.state(t, id, book); got != lentOnce {
		t.Errorf("left %+v, want %+v", got, lentOnce)
	}
	return true
}

// renewals waits until claims were renewed n times, or the repeat is answered. It
// tells whether no two were further apart than two seconds, of the three that a
// claim lives.
func (p *pair) renewals(t *testing.T, n float64, repeat lending) bool {
	t.Helper()
	const renewed = `http_requests_total{method="PUT",route="` + keysPath + `/:claimId",status="204"}`
	seen, last, longest := 0.0, time.Now(), time.Duration(0)
	eventually(t, patience, "renewals of the claim", func() bool {
		longest = max(longest, time.Since(last))
		if now := metric(t, p, renewed); now > seen {
			seen, last = now, time.Now()
		}
		return seen >= n || len(repeat.answered) > 0
	})
	return longest <= 2*time.Second
}

func TestAnInstanceThatSleptWhileItWasTakenOverAnswersAsTheOther(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		active bool // the patron, when the repeat comes
		status int
		leaves state
	}{
		"lent":    {true, http.StatusCreated, lentOnce},
		"refused": {false, http.StatusUnprocessableEntity, untouched},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, links, asleep, wake := sleeper(t, circulation.Recounted)
			id, patron := p.patron(t)
			book := p.books(t, 1)[0]
			links[0].add(linkFault{method: http.MethodPut, path: keysPath, times: always, befall: loseRequest}) // it cannot renew its claim
			slept := p.keyedLater(t, 0, "k", p.checkOut(book, patron))
			<-asleep
			user := p.stored(t, "/users/"+id)
			user["active"] = tt.active
			if a := do(t, p.Storage, http.MethodPut, "/users/"+id, user); a.Status != http.StatusNoContent {
				t.Fatalf("changing the patron: %d %s", a.Status, a.Body)
			}
			repeat := p.keyed(t, 1, "k", p.checkOut(book, patron))
			if repeat.Status != tt.status {
				t.Errorf("the repeat was answered %d %s, want %d", repeat.Status, repeat.Body, tt.status)
			}
			links[0].mend()
			wake()
			sameAnswer(t, "who slept", slept.wait(), repeat)
			got := p.state(t, id, book)
			if got.Locks = 0; got != tt.leaves {
				t.Errorf("left %+v, want %+v", got, tt.leaves)
			}
		})
	}
}

func TestAKeyWhoseStorageFailsLendsOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fault  linkFault
		status int
		leaves state
	}{
		{"a claim whose answer is lost is asked for again", linkFault{method: http.MethodPost, path: keysPath, times: 1, befall: loseAnswer}, 201, lentOnce},
		{"a claim that cannot be asked for lends nothing", linkFault{method: http.MethodPost, path: keysPath, times: always, befall: loseRequest}, 503, untouched},
		{"a claim that fails lends nothing", linkFault{method: http.MethodPost, path: keysPath, times: always, befall: answer(500)}, 500, untouched},
		{"an answer that cannot be kept is given all the same", linkFault{method: http.MethodPut, path: keysPath, times: always, befall: loseRequest}, 201, lentOnce},
		{"an answer that is kept unheard is given", linkFault{method: http.MethodPut, path: keysPath, times: always, befall: loseAnswer}, 201, lentOnce},
		{"a commit that never arrives is sent by the repeat", linkFault{method: http.MethodPost, path: commitPath, times: always, befall: loseRequest}, 503, untouched},
		{"a commit of which no answer ever comes", linkFault{method: http.MethodPost, path: commitPath, times: always, befall: loseAnswer}, 201, lentOnce},
	}
	p, links := linked(t, stack.Options{Circulations: len(tests), CirculationEnv: patient}, 1)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			id, patron := p.patron(t)
			book, key := p.books(t, 1)[0], tt.name
			links[i].add(tt.fault)
			first := p.keyed(t, i, key, p.checkOut(book, patron))
			if first.Status != tt.status {
				t.Errorf("answered %d %s, want %d", first.Status, first.Body, tt.status)
			}
			if got := p.state(t, id, book); got != tt.leaves {
				t.Errorf("left %+v, want %+v", got, tt.leaves)
			}
			links[i].mend()
			repeat := p.keyed(t, i, key, p.checkOut(book, patron))
			loan := object(t, repeat, http.StatusCreated)
			if first.Status == http.StatusCreated && first.Header.Get("Location") != repeat.Header.Get("Location") {
				t.Errorf("the repeat lent %v, the first %s", loan["id"], first.Header.Get("Location"))
			}
			if got := p.state(t, id, book); got != lentOnce {
				t.Errorf("the repeat left %+v, want %+v", got, lentOnce)
			}
		})
	}
}
