package integration_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// lockedBuffer is a log that many goroutines write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestEnvironmentsThatDiffer_TheLimitHolds(t *testing.T) {
	t.Parallel()
	const rounds, checkOuts, limit = 10, 16, 3
	var log lockedBuffer
	p := start(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: on(),
		CirculationEnvOf: func(i int) []string { return []string{fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", i == 0)} },
		Log:              slog.New(slog.NewTextHandler(&log, nil)),
	}, limit)
	_, first := p.patron(t)
	object(t, p.lend(t, 0, p.books(t, 1)[0], first), http.StatusCreated) // from now on the first instance is heard

	for range rounds {
		userID, patron := p.patron(t)
		var all []stack.CheckOut
		for _, book := range p.books(t, checkOuts) {
			all = append(all, p.checkOut(book, patron))
		}
		outcomes := stack.Burst(t.Context(), p.machines, all)
		sum := stack.Sum(outcomes)
		for _, o := range outcomes {
			if o.Err != nil || o.Status >= http.StatusInternalServerError {
				t.Errorf("a check-out failed: %d %s %v", o.Status, o.Body, o.Err)
			}
		}
		if n := p.open(t, userID); n != limit || sum.Failed > 0 || sum.Lent != limit {
			t.Errorf("a patron has %d books, want %d; answers %+v", n, limit, sum)
		}
	}
	p.noLocksLeft(t)

	const differs = `circulation_settings_fallbacks_total{reason="environment_differs"}`
	for i, base := range p.Circulations {
		counted := !strings.Contains(p.metrics(t, base), differs+" 0\n")
		if counted != (i == 1) {
			t.Errorf("instance %d counts %t that another environment differs", i, counted)
		}
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "set CHECKOUT_LOCK_FEATURE_ENABLED alike on all instances") {
		t.Errorf("no warning in the log:\n%.2000s", log.String())
	}
	for i, source := range []string{"environment", "otherInstance"} {
		checkParts(t, fmt.Sprintf("settings of instance %d", i), object(t, do(t, p.machines[i], http.MethodGet, settingsPath, nil), http.StatusOK),
			record{"enabled.value": true, "enabled.source": source})
	}

	// What the tenant decides is in force on both.
	p.set(t, 1, record{"enabled": false, "reason": "no exams"})
	eventually(t, inForce, "the tenant's own setting is in force on both", func() bool {
		for i := range p.machines {
			shown := object(t, do(t, p.machines[i], http.MethodGet, settingsPath, nil), http.StatusOK)
			if part(shown, "enabled.value") != false || part(shown, "enabled.source") != "tenant" {
				return false
			}
		}
		return true
	})
	for i := range p.machines {
		object(t, p.lend(t, i, p.books(t, 1)[0], first), http.StatusCreated)
	}
}

func TestEnvironmentsThatDiffer_StopCheckOutsThatAreAboutToCommitWithoutTheLock(t *testing.T) {
	t.Parallel()
	const limit = 2
	p, links := linked(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: on(),
		CirculationEnvOf: func(i int) []string { return []string{fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", i == 0)} },
	}, limit)
	userID, patron := p.patron(t)
	books := p.books(t, 4)
	held := &heldCommits{open: make(chan struct{}), loans: map[string]bool{}}
	letGo := sync.OnceFunc(func() { close(held.open) })
	t.Cleanup(letGo)
	links[1].add(linkFault{method: http.MethodPost, path: commitPath, times: always, befall: held.hold})
	lendings := make([]lending, len(books))
	for i, book := range books {
		lendings[i] = p.lendLater(t.Context(), t, 1, book, patron)
	}
	eventually(t, patience, "all are about to commit without a lock", func() bool { return held.count() == len(books) })
	for _, book := range p.books(t, limit) { // the other instance announces its environment with the first one
		object(t, p.lend(t, 0, book, patron), http.StatusCreated)
	}
	links[1].mend()
	letGo()
	for i, l := range lendings {
		a := l.wait()
		if a.Status == http.StatusGatewayTimeout { // held for longer than circulation waits: its machine asks again
			a = p.lend(t, 1, books[i], patron)
		}
		if got := text(refusals(t, a, http.StatusUnprocessableEntity)); !strings.Contains(got, "ITEM_LIMIT_MATERIAL_TYPE") {
			t.Errorf("refused with %q", got)
		}
	}
	if n := p.open(t, userID); n != limit {
		t.Errorf("%d loans are open, want the limit of %d", n, limit)
	}
	p.noLocksLeft(t)
}
