package library

import (
	"strings"

	"checkoutlock/schemas"
)

// Snapshot is what storage has on the subjects of a check-out, as of one moment. A record that does
// not exist is nil or empty.
type Snapshot struct {
	User            *User
	ProxyUser       *User
	ProxyRelations  []ProxyRelation // by which the proxy may borrow for the user, also ended ones
	ManualBlocks    []ManualBlock
	AutomatedBlocks []AutomatedBlock

	Item     *Item
	Holdings Holdings
	Instance Instance
	OnLoan   bool                    // the item has an open loan
	Requests []schemas.QueuedRequest // the open ones of the item's queue

	// OpenLoans counts the user's open loans as FOLIO's item limit does.
	OpenLoans []schemas.OpenLoans
}

// CountOpenLoans returns how many open loans have the types. An empty type does not narrow the count.
func (s Snapshot) CountOpenLoans(materialTypeID, loanTypeID string) int {
	counts := func(wanted, id string) bool { return wanted == "" || strings.EqualFold(wanted, id) }
	n := 0
	for _, l := range s.OpenLoans {
		if counts(materialTypeID, l.MaterialTypeID) && counts(loanTypeID, l.LoanTypeID) {
			n += l.Count
		}
	}
	return n
}
