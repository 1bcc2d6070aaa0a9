// Package patronblock derives the automated blocks of a patron from the limits of the patron's
// group and from the open loans, by the rules of mod-patron-blocks. It does not know fees and
// fines, so the condition on their balance blocks nothing.
package patronblock

import (
	"encoding/json"
	"fmt"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
)

// GroupLimit is a limit of a patron group with its condition.
type GroupLimit struct {
	ConditionID    string  `json:"id"`
	Value          float64 `json:"value"`
	Message        string  `json:"message"`
	BlockBorrowing bool    `json:"blockBorrowing"`
	BlockRenewals  bool    `json:"blockRenewals"`
	BlockRequests  bool    `json:"blockRequests"`
}

const minutesPerDay = 24 * 60

// countLoans returns from how many open loans on the limit blocks borrowing, and everything else.
// It is false for a condition that open loans do not show. A patron may have as many loans as the
// value says. So the value itself blocks only a further loan, and only of the items charged out.
func (g GroupLimit) countLoans() (borrowing, others schemas.LoanLimit, ok bool) {
	most := int(g.Value)
	counted := schemas.LoanLimit{Max: most + 1}
	switch g.ConditionID {
	case records.ItemsChargedOut:
		return schemas.LoanLimit{Max: most}, counted, true
	case records.LostItems:
		counted.Lost = true
	case records.OverdueItems:
		counted.OverdueMinutes = 1
	case records.OverdueRecalls:
		counted.OverdueMinutes, counted.Recalled = 1, true
	case records.DaysOfOverdueRecall: // a day that has begun counts
		counted = schemas.LoanLimit{Max: 1, OverdueMinutes: most*minutesPerDay + 1, Recalled: true}
	default:
		return schemas.LoanLimit{}, schemas.LoanLimit{}, false
	}
	return counted, counted, true
}

// block is one of FOLIO's automatedPatronBlocks.
type block struct {
	ConditionID    string `json:"patronBlockConditionId"`
	BlockBorrowing bool   `json:"blockBorrowing"`
	BlockRenewals  bool   `json:"blockRenewals"`
	BlockRequests  bool   `json:"blockRequests"`
	Message        string `json:"message"`
}

// judgeLimits returns the blocks of the limits that the loans reach.
func judgeLimits(limits []GroupLimit, loans []schemas.OpenLoans) []block {
	var reached []block
	for _, g := range limits {
		borrowing, others, ok := g.countLoans()
		if !ok {
			continue
		}
		stops := others.Count(loans) >= others.Max
		b := block{
			ConditionID: g.ConditionID, Message: g.Message,
			BlockBorrowing: g.BlockBorrowing && borrowing.Count(loans) >= borrowing.Max,
			BlockRenewals:  g.BlockRenewals && stops, BlockRequests: g.BlockRequests && stops,
		}
		if b.BlockBorrowing || b.BlockRenewals || b.BlockRequests {
			reached = append(reached, b)
		}
	}
	return reached
}

// ListBorrowingLimits returns the limits that block borrowing, reached or not.
func ListBorrowingLimits(limits []GroupLimit) []schemas.BlockLimit {
	var listed []schemas.BlockLimit
	for _, g := range limits {
		if borrowing, _, ok := g.countLoans(); ok && g.BlockBorrowing {
			listed = append(listed, schemas.BlockLimit{Limit: borrowing, Message: g.Message})
		}
	}
	return listed
}

// listKey is the property of FOLIO's document that has the list.
const listKey = "automatedPatronBlocks"

// AddBlocks returns the patron's stored document with the blocks of the limits that the loans
// reach. Both may be absent.
func AddBlocks(stored json.RawMessage, limits []GroupLimit, loans []schemas.OpenLoans) (json.RawMessage, error) {
	reached := judgeLimits(limits, loans)
	if len(reached) == 0 {
		return stored, nil
	}
	doc := map[string]any{}
	if stored != nil {
		if err := json.Unmarshal(stored, &doc); err != nil {
			return nil, fmt.Errorf("reading stored blocks: %w", err)
		}
	}
	list, _ := doc[listKey].([]any)
	for _, b := range reached {
		list = append(list, b)
	}
	doc[listKey] = list
	all, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("writing blocks: %w", err)
	}
	return all, nil
}
