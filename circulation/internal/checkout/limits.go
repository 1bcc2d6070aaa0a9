package checkout

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// checkLimit compares the policy's limit with the open loans that were read with the patron. It is a
// first check, which saves a patron at the limit the wait for the lock. The limits of the patron's
// group have theirs in storage, which lists those that are reached as automated blocks.
func (p *plan) checkLimit(ctx context.Context) fault.List {
	counted := p.findLimit()
	if counted == nil {
		return nil
	}
	n := counted.Count(p.facts.OpenLoans)
	p.standing = &LimitStanding{Max: p.limit.Max, Open: n, Reached: p.limit.IsReached(n), Message: p.limit.Message}
	if !p.standing.Reached {
		return nil
	}
	return fault.List{p.refuseLimit(ctx)}
}

// findLimit returns the policy's limit with the types of the item that it counts; nil if none
// applies.
func (p *plan) findLimit() *schemas.LoanLimit {
	if !p.limited {
		return nil
	}
	counted := &schemas.LoanLimit{Max: p.limit.Max}
	if p.limit.ByMaterialType {
		counted.MaterialTypeID = p.facts.Copy.Item.MaterialTypeID
	}
	if p.limit.ByLoanType {
		counted.LoanTypeID = p.facts.Copy.Item.LoanTypeID()
	}
	return counted
}

// refuseLimit returns FOLIO's refusal of a check-out that would exceed the policy's limit.
func (p *plan) refuseLimit(ctx context.Context) fault.Detail {
	d := fault.Refusal(p.limit.Code, p.limit.Message, fault.Param("itemBarcode", p.req.ItemBarcode),
		fault.Param("itemLimit", strconv.Itoa(p.limit.Max)))
	d.OverridableBlock = itemLimitBlock.check.Describe(ctx)
	return d
}

// countedLimit is a limit that the commit counts, with the refusal of a check-out beyond it.
type countedLimit struct {
	limit   schemas.LoanLimit
	refusal fault.Detail
}

type countedLimits []countedLimit

// listLimits returns the limits of the patron's group and of the policy that staff do not lift. They
// are in the order of FOLIO's errors.
func (p *plan) listLimits(ctx context.Context) countedLimits {
	var all countedLimits
	if !p.unblocked {
		for _, l := range p.facts.BlockLimits {
			d := library.NewAutomatedBlock(l.Message)
			d.OverridableBlock = patronBlock.check.Describe(ctx)
			all = append(all, countedLimit{l.Limit, d})
		}
	}
	if own := p.findLimit(); own != nil {
		all = append(all, countedLimit{*own, p.refuseLimit(ctx)})
	}
	return all
}

// listCounted returns what the commit counts.
func (all countedLimits) listCounted() []schemas.LoanLimit {
	counted := make([]schemas.LoanLimit, len(all))
	for i, l := range all {
		counted[i] = l.limit
	}
	return counted
}

// findReached returns the refusals of the limits that storage names as reached. If it names none, it
// is of another version, and any of them may be reached.
func (all countedLimits) findReached(err error) fault.List {
	var places []string
	if f, ok := errors.AsType[*fault.Error](err); ok {
		for _, d := range f.Details {
			for _, q := range d.Parameters {
				if q.Key == schemas.LimitPlace && q.Value != nil {
					places = append(places, *q.Value)
				}
			}
		}
	}
	var found fault.List
	for i, l := range all {
		if len(places) == 0 || slices.Contains(places, strconv.Itoa(i)) {
			found = append(found, l.refusal)
		}
	}
	return found
}
