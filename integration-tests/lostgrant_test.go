package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/integration-tests/stack"
)

func TestALockWhoseGrantGotLostDoesNotBlockThePatron(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault  linkFault
		status int
	}{
		"both answers were lost":         {linkFault{times: 2, befall: loseAnswer}, http.StatusServiceUnavailable},
		"the answer was a 500 on return": {linkFault{times: 1, befall: answerInstead(http.StatusInternalServerError)}, http.StatusInternalServerError},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, links := linked(t, stack.Options{CirculationEnv: on("LOCK_TTL_MS=600000")}, 1)
			id, patron := p.patron(t)
			book := p.books(t, 1)[0]
			tt.fault.method, tt.fault.path = http.MethodPost, acquirePath
			links[0].add(tt.fault)
			if a := p.lend(t, 0, book, patron); a.Status != tt.status {
				t.Errorf("answered %d %s, want %d", a.Status, a.Body, tt.status)
			}
			if got := p.state(t, id, book); got != untouched { // and no lock
				t.Errorf("left %+v, want %+v", got, untouched)
			}
			if a := p.lend(t, 0, book, patron); a.Status != http.StatusCreated {
				t.Errorf("the next try was answered %d %s", a.Status, a.Body)
			}
		})
	}
}

// answerInstead passes the call on and answers with another status.
func answerInstead(status int) befall {
	return func(w http.ResponseWriter, _ *http.Request, pass func()) {
		pass()
		w.WriteHeader(status)
	}
}
