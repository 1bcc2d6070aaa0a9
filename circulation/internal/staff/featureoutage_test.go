package staff_test

import (
	"strings"
	"testing"

	"checkoutlock/schemas/fault"
)

// A storage of the version before knows neither changes nor figures, but settings.
func TestTheSwitchIsShownAlsoWhenNobodyKnowsWhoTurnedIt(t *testing.T) {
	t.Parallel()
	unknown := fault.New(fault.Unavailable, "Storage was not reached")
	v := visit(t, &library{view: own(false, 3000), noChanges: unknown, noFigures: unknown})
	p := v.get(t, "/staff/diku/")
	p.want(t, 200, "The lock is off", "Turn on", "The changes could not be read just now.")
	p.lacks(t, "Nobody has changed", "There are no older changes")
	if !strings.Contains(v.logged.String(), "page shown without changes") {
		t.Errorf("logged %s", v.logged)
	}
}
