package staff

import (
	"slices"
	"strings"

	"checkoutlock/circulation/internal/checkout"
)

// outcome is one of the ends of a check-out in the words of the pages.
type outcome struct {
	Name    string // as the history has it
	Word    string
	Kind    string // class of its badge
	Meaning string
	Why     string // shown for each such check-out; empty if its reason says it
}

// outcomes are all of them, the most frequent searches first.
var outcomes = []outcome{
	{checkout.OutcomeLent, "Lent", "good", "The loan was made.", ""},
	{
		checkout.OutcomeLimitReached, "Limit reached", "bad",
		"The patron has as many loans as the loan policy allows. The item was not lent.", "",
	},
	{
		checkout.OutcomeRefused, "Refused", "bad",
		"The library's rules say no: the patron is blocked or the item cannot be lent, for example. The item was not lent.", "",
	},
	{
		checkout.OutcomeLockNotAcquired, "Had to wait too long", "warn",
		"The check-out did not get the patron's lock in time, or lost it and had no time left. The item was not lent; trying again usually helps.",
		"Another check-out of this patron was under way for longer than the machine may wait.",
	},
	{
		checkout.OutcomeUnknown, "Not known", "warn",
		"Storage was lost while the loan was written, so it is not known whether the loan was made.",
		"Storage was lost in the middle; look at the patron's loans.",
	},
	{
		checkout.OutcomeTakenOver, "Taken over", "plain",
		"The machine sent the same check-out again, and the second request finished it. Look at that one.",
		"The machine sent it again, and that request took over.",
	},
	{
		checkout.OutcomeClientLeft, "Machine left", "plain",
		"The machine hung up before the check-out was done. The item was not lent.",
		"The machine hung up before the check-out was done, perhaps because it waited longer than it is patient.",
	},
	{
		checkout.OutcomeOverloaded, "Too busy", "warn",
		"So many check-outs came at once that this one was not begun. The item was not lent; trying again later helps.",
		"More check-outs came at once than could be worked on in time.",
	},
	{
		checkout.OutcomeFailed, "Failed", "bad",
		"Something in the services did not work. The item was not lent.",
		"Something in the services did not work; an operator finds it by the request id.",
	},
}

// lockRefused begins the message to machines that did not get the lock.
const lockRefused = "unable to acquire lock"

// explain says why a check-out with this reason ended so. It is empty if the reason
// says it.
func (o outcome) explain(reason string) string {
	if strings.HasPrefix(reason, lockRefused+": ") {
		return ""
	}
	return o.Why
}

func findOutcome(name string) outcome {
	if i := slices.IndexFunc(outcomes, func(o outcome) bool { return o.Name == name }); i >= 0 {
		return outcomes[i]
	}
	return outcome{Name: name, Word: name, Kind: "plain"}
}
