// Package lockhistory records what clients of locks ask for and get, and judges by porcupine
// whether one lock at a time explains it.
package lockhistory

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// late is how long after a client lost its answer the call may still have its effect.
	late = time.Second
	// precision of the times to live: services round them to milliseconds.
	precision = 5 * time.Millisecond
	// checkTime bounds the search for an order of the calls.
	checkTime = 2 * time.Minute
	// mostUnknown is the share of answers that may be lost, in percent. More prove little.
	mostUnknown = 40
)

// History is a record of calls. Clients share it.
type History struct {
	ttl   time.Duration
	start time.Time

	mu       sync.Mutex
	calls    []porcupine.Operation
	expiries []porcupine.Operation
	outcomes map[Kind]map[Outcome]int
}

// New returns an empty record. All locks have the time to live.
func New(ttl time.Duration) *History {
	return &History{ttl: ttl, start: time.Now(), outcomes: map[Kind]map[Outcome]int{}}
}

// Do makes a call and records it. client is a number of the caller.
func (h *History) Do(client int, c Call, send func() Answer) Answer {
	h.mu.Lock()
	h.calls = append(h.calls, porcupine.Operation{})
	c.version = len(h.calls)
	h.mu.Unlock()
	called := time.Since(h.start)
	a := send()
	returned := time.Since(h.start)

	h.mu.Lock()
	defer h.mu.Unlock()
	end := returned
	if a.Outcome == Unknown {
		end += late
	}
	h.calls[c.version-1] = newOperation(client, c, a, called, end)
	if begins := c.Kind == Acquire || c.Kind == Renew; begins && (a.Outcome == Done || a.Outcome == Unknown) {
		x := Call{Kind: expire, Key: c.Key, version: c.version}
		h.expiries = append(h.expiries,
			newOperation(client, x, Answer{Outcome: Done}, called+h.ttl-precision, end+h.ttl+precision))
	}
	if h.outcomes[c.Kind] == nil {
		h.outcomes[c.Kind] = map[Outcome]int{}
	}
	h.outcomes[c.Kind][a.Outcome]++
	return a
}

func newOperation(client int, c Call, a Answer, called, returned time.Duration) porcupine.Operation {
	return porcupine.Operation{ClientId: client, Input: c, Output: a, Call: int64(called), Return: int64(returned)}
}

// Check fails the test if no order of the calls explains all answers, or if too few are known.
// All clients have ended.
func (h *History) Check(t *testing.T) {
	t.Helper()
	unknown, held := 0, 0
	for _, ended := range h.outcomes {
		unknown += ended[Unknown]
		held += ended[Held] + ended[Refused]
	}
	t.Logf("%d calls, of which %d were refused and %d have no known outcome: %v", len(h.calls), held, unknown, h.outcomes)
	if unknown*100 > mostUnknown*len(h.calls) {
		t.Errorf("%d of %d outcomes are unknown, want at most %d %%", unknown, len(h.calls), mostUnknown)
	}
	if len(h.expiries) == 0 {
		t.Error("no lock was granted")
	}
	m := model.ToModel()
	result, info := porcupine.CheckOperationsVerbose(m, append(allowWithdrawn(h.calls, h.ttl), h.expiries...), checkTime)
	if result == porcupine.Ok {
		return
	}
	picture := filepath.Join(t.ArtifactDir(), "history.html")
	t.Errorf("the history is %s; go test -artifacts keeps its picture, %s: %v", result, picture,
		porcupine.VisualizePath(m, info, picture))
}
