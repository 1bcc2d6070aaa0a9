package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/integration-tests/stack"
)

func TestLock_LostGrant(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault  linkFault
		status int
	}{
		"both answers were lost":         {linkFault{times: 2, handle: loseAnswer}, http.StatusServiceUnavailable},
		"the answer was a 500 on return": {linkFault{times: 1, handle: replaceAnswer(http.StatusInternalServerError)}, http.StatusInternalServerError},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, links := startPairWithLinks(t, stack.Options{CirculationEnv: enableLock("LOCK_TTL_MS=600000")}, 1)
			id, patron := p.addPatron(t)
			book := p.addBooks(t, 1)[0]
			tt.fault.method, tt.fault.path = http.MethodPost, acquirePath
			links[0].addFault(tt.fault)
			if a := p.lendBook(t, 0, book, patron); a.Status != tt.status {
				t.Errorf("answered %d %s, want %d", a.Status, a.Body, tt.status)
			}
			if got := p.readState(t, id, book); got != untouched { // and no lock
				t.Errorf("left %+v, want %+v", got, untouched)
			}
			if a := p.lendBook(t, 0, book, patron); a.Status != http.StatusCreated {
				t.Errorf("the next try was answered %d %s", a.Status, a.Body)
			}
		})
	}
}

// replaceAnswer passes the call on and answers with another status.
func replaceAnswer(status int) faultHandler {
	return func(w http.ResponseWriter, _ *http.Request, pass func()) {
		pass()
		w.WriteHeader(status)
	}
}
