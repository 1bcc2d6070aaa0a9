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

// lockedBuffer is a buffer for a log that many goroutines write.
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

func TestDifferingEnvironments_KeepTheLimit(t *testing.T) {
	t.Parallel()
	const rounds, checkOuts, limit = 10, 16, 3
	var log lockedBuffer
	p := startPair(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: enableLock(),
		CirculationEnvOf: func(i int) []string { return []string{fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", i == 0)} },
		Log:              slog.New(slog.NewTextHandler(&log, nil)),
	}, limit)
	_, first := p.addPatron(t)
	readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], first), http.StatusCreated) // instance 0 announces its environment

	for range rounds {
		userID, patron := p.addPatron(t)
		var all []stack.CheckOut
		for _, book := range p.addBooks(t, checkOuts) {
			all = append(all, p.newCheckOut(book, patron))
		}
		outcomes := stack.SendBurst(t.Context(), p.machines, all)
		sum := stack.Summarize(outcomes)
		for _, o := range outcomes {
			if o.Err != nil || o.Status >= http.StatusInternalServerError {
				t.Errorf("a check-out failed: %d %s %v", o.Status, o.Body, o.Err)
			}
		}
		if n := p.countOpenLoans(t, userID); n != limit || sum.Failed > 0 || sum.Lent != limit {
			t.Errorf("a patron has %d books, want %d; answers %+v", n, limit, sum)
		}
	}
	p.checkNoLocks(t)

	const differs = `circulation_settings_fallbacks_total{reason="environment_differs"}`
	for i, base := range p.Circulations {
		counted := !strings.Contains(p.readMetrics(t, base), differs+" 0\n")
		if counted != (i == 1) {
			t.Errorf("instance %d: fallbacks for a differing environment are counted: %t", i, counted)
		}
	}
	if !strings.Contains(log.String(), "level=WARN") ||
		!strings.Contains(log.String(), "set CHECKOUT_LOCK_FEATURE_ENABLED alike on all instances") {
		t.Errorf("no warning in the log:\n%.2000s", log.String())
	}
	for i, source := range []string{"environment", "otherInstance"} {
		checkParts(t, fmt.Sprintf("settings of instance %d", i), p.readSettings(t, i),
			record{"enabled.value": true, "enabled.source": source})
	}

	// The tenant's own setting wins on both instances.
	p.changeSettings(t, 1, record{"enabled": false, "reason": "no exams"})
	waitUntil(t, settingsLimit, "the tenant's own setting is in force on both", func() bool {
		for i := range p.machines {
			shown := p.readSettings(t, i)
			if readPart(shown, "enabled.value") != false || readPart(shown, "enabled.source") != "tenant" {
				return false
			}
		}
		return true
	})
	for i := range p.machines {
		readObject(t, p.lendBook(t, i, p.addBooks(t, 1)[0], first), http.StatusCreated)
	}
}

func TestDifferingEnvironments_StopCommitsWithoutTheLock(t *testing.T) {
	t.Parallel()
	const limit = 2
	p, links := startPairWithLinks(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: enableLock(),
		CirculationEnvOf: func(i int) []string { return []string{fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", i == 0)} },
	}, limit)
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 4)
	held := holdCommits(t)
	links[1].addFault(linkFault{method: http.MethodPost, path: commitPath, times: always, handle: held.delay})
	lendings := make([]lending, len(books))
	for i, book := range books {
		lendings[i] = p.startLending(t.Context(), t, 1, book, patron)
	}
	waitUntil(t, patience, "all are about to commit without a lock",
		func() bool { return held.countCommits() == len(books) })
	for _, book := range p.addBooks(t, limit) { // the first check-out announces the environment of instance 0
		readObject(t, p.lendBook(t, 0, book, patron), http.StatusCreated)
	}
	links[1].removeFaults()
	held.release()
	for i, l := range lendings {
		a := l.awaitAnswer()
		if a.Status == http.StatusServiceUnavailable { // held for longer than circulation waits, so the machine repeats it
			a = p.lendBook(t, 1, books[i], patron)
		}
		checkAtTheLimit(t, a)
	}
	if n := p.countOpenLoans(t, userID); n != limit {
		t.Errorf("%d loans are open, want the limit of %d", n, limit)
	}
	p.checkNoLocks(t)
}
