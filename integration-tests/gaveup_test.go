package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// gaveUp tells whether circulation gave a check-out up since storage took longer
// than it waits, as on a slow computer when much comes at once. A machine asks
// again then.
func gaveUp(a stack.Answer) bool {
	return a.Status == http.StatusGatewayTimeout ||
		a.Status == http.StatusInternalServerError && strings.Contains(string(a.Body), "The item was not lent")
}

// maxRepeats is how often a machine asks again.
const maxRepeats = 10

// burst sends all check-outs at once, and those that circulation gave up again. Any
// other failure fails the test.
func (p *pair) burst(t *testing.T, checkOuts []stack.CheckOut) []stack.Outcome {
	t.Helper()
	var answered []stack.Outcome
	for range maxRepeats {
		var again []stack.CheckOut
		for i, o := range stack.Burst(t.Context(), p.machines, checkOuts) {
			switch {
			case o.Err == nil && gaveUp(o.Answer):
				again = append(again, checkOuts[i])
			case o.Err != nil || o.Status >= http.StatusInternalServerError:
				t.Errorf("a check-out failed: %d %s %v", o.Status, o.Body, o.Err)
			default:
				answered = append(answered, o)
			}
		}
		if checkOuts = again; len(checkOuts) == 0 {
			return answered
		}
		t.Logf("circulation gave up %d check-outs, which are sent again", len(checkOuts))
	}
	t.Errorf("circulation gives up %d check-outs, however often they are sent", len(checkOuts))
	return answered
}
