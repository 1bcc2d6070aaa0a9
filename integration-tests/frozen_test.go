package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"checkoutlock/integration-tests/stack"
)

// inPlainText makes pgx send each statement with its text, which a wire searches.
const inPlainText = "default_query_exec_mode=exec"

// startPairWithWire starts a pair with a wire between storage instance 0 and its database.
func startPairWithWire(t *testing.T, o stack.Options, limit int) (*pair, *wire) {
	t.Helper()
	var before *wire
	o.DatabaseVia = func(i int, databaseURL string) string {
		if i > 0 {
			return databaseURL
		}
		if strings.Contains(databaseURL, "?") {
			databaseURL += "&" + inPlainText
		} else {
			databaseURL += "?" + inPlainText
		}
		w, through := newWire(t, databaseURL, nil)
		before = w
		return through
	}
	return startPair(t, o, limit), before
}

func TestFrozenCommit(t *testing.T) {
	t.Parallel()
	const write = ".loan (id, jsonb, limits) VALUES"
	for _, tt := range []struct {
		name, at string
		enabled  bool
		acquires bool // the lock, before the commit
		operate  bool // an operator releases the lock, or turns the feature on
	}{
		{name: "between its batches, with a lock that it takes", at: write, enabled: true},
		{name: "between its batches, with the lock", at: write, enabled: true, acquires: true, operate: true},
		{name: "between its batches, without the lock", at: write, operate: true},
		{name: "at COMMIT, with a lock that it takes", at: "COMMIT\x00", enabled: true},
		{name: "at COMMIT, with the lock", at: "COMMIT\x00", enabled: true, acquires: true},
		{name: "at COMMIT, without the lock", at: "COMMIT\x00", operate: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := stack.Options{
				Storages: 2, Circulations: 2,
				CirculationEnv: enableLock("LOCK_TTL_MS=1000", fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", tt.enabled)),
			}
			o.Via = func(_ int, storage string) string {
				l := newLink(t, storage)
				l.acquires = tt.acquires
				return l.url
			}
			p, before := startPairWithWire(t, o, 1)
			id, patron := p.addPatron(t)
			books := p.addBooks(t, 2)
			frozen := before.pauseAt(tt.at)
			sleeper := p.startLending(t.Context(), t, 0, books[0], patron)
			waitUntil(t, patience, "the commit is frozen", func() bool {
				select {
				case <-frozen:
					return true
				default:
					return false
				}
			})
			began := time.Now()
			if tt.operate {
				p.checkOperators(t, id, tt.enabled)
			}
			waitUntil(t, patience, "another instance lends to the patron", func() bool {
				return p.lendBook(t, 1, books[1], patron).Status == http.StatusCreated
			})
			t.Logf("another instance lent after %s", time.Since(began).Round(time.Millisecond))

			before.resume()
			if a := sleeper.awaitAnswer(); a.Status == http.StatusCreated {
				t.Errorf("the frozen check-out was answered %d %s", a.Status, a.Body)
			}
			if n := p.countOpenLoans(t, id); n != 1 {
				t.Errorf("the patron has %d loans, want 1", n)
			}
			got := p.readState(t, id, books[0])
			if got.Status != "Available" || got.Events != 0 {
				t.Errorf("the frozen check-out left %+v", got)
			}
		})
	}
}

// checkOperators fails the test unless operators can release the lock of a frozen
// check-out by force, or turn the feature on.
func (p *pair) checkOperators(t *testing.T, userID string, enabled bool) {
	t.Helper()
	began := time.Now()
	if !enabled {
		readObject(t, callEndpoint(t, p.machines[1], http.MethodPut, settingsPath, record{"enabled": true}), http.StatusOK)
		t.Logf("the lock was turned on after %s", time.Since(began).Round(time.Millisecond))
		return
	}
	var list struct{ CheckoutLocks []struct{ ID string } }
	if err := callEndpoint(t, p.storageAt(1), http.MethodGet, acquirePath+"?userId="+userID,
		nil).JSON(&list); err != nil || len(list.CheckoutLocks) != 1 {
		t.Fatalf("locks are %+v, %v", list, err)
	}
	a := callEndpoint(t, p.storageAt(1), http.MethodPost, acquirePath+"/"+list.CheckoutLocks[0].ID+"/forced-release",
		record{"reason": "stuck"})
	t.Logf("the forced release was answered %d after %s", a.Status, time.Since(began).Round(time.Millisecond))
	if a.Status != http.StatusOK {
		t.Errorf("the forced release was answered %d %s", a.Status, a.Body)
	}
}
