package staff

import (
	"net/http"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
	"checkoutlock/web"
)

// The page What happened: how check-outs ended, and why.

const checkOutsShown = 50

type checkOutsPage struct {
	checkOutsForm
	Action   string
	Problems []field
	Entries  []pastCheckOut
	Filtered bool
	All      string // path without filters
	Offset   int
	Shown    bool   // patrons' barcodes are written out
	Toggle   string // path of the same with the opposite of Shown
	Legend   []outcome
	Newer    string
	Older    string
}

// pastCheckOut is an entry of the history as the page shows it.
type pastCheckOut struct {
	schemas.PastCheckOut
	Patron  string
	Outcome outcome
	Why     string // beside the reason
	Lent    bool
}

// checkOuts handles GET /staff/{tenant}/check-outs.
func (p *Pages) checkOuts(v *visit) error {
	offset, err := offsetOf(v)
	if err != nil {
		return err
	}
	shown, toggle := patronsShown(v, "/check-outs")
	form, filter := readCheckOutsForm(v.QueryParams())
	page := checkOutsPage{
		checkOutsForm: form, Action: v.path("/check-outs"), Problems: form.problems(),
		Filtered: filter != (schemas.HistoryFilter{}), Offset: offset, Shown: shown, Toggle: toggle, Legend: outcomes, All: v.pathWithPatrons("/check-outs"),
	}
	status := http.StatusUnprocessableEntity
	if len(page.Problems) == 0 {
		filter.Offset, filter.Limit = offset, checkOutsShown
		found, err := p.Admin.CheckOuts(v.ctx(), filter)
		switch {
		case fault.Is(err, fault.Invalid):
			page.Problems = []field{{Wrong: web.ToFault(err).Msg}}
		case err != nil:
			return err
		default:
			status = http.StatusOK
			page.Entries = describeCheckOuts(found.CheckOuts, shown)
			page.Newer, page.Older = neighbours(v, "/check-outs", offset, checkOutsShown, found.More)
		}
	}
	return v.show(status, "checkouts.html", "/check-outs", "What happened", page)
}

func describeCheckOuts(list []schemas.PastCheckOut, named bool) []pastCheckOut {
	entries := make([]pastCheckOut, len(list))
	for i, e := range list {
		o := outcomeOf(e.Outcome)
		entries[i] = pastCheckOut{PastCheckOut: e, Patron: e.UserBarcode, Outcome: o, Why: o.why(e.Reason), Lent: e.Outcome == schemas.OutcomeLent}
		if !named {
			entries[i].hidePatron()
		}
	}
	return entries
}

// hidePatron masks the patron's barcode, and also where the reason names the patron.
func (p *pastCheckOut) hidePatron() {
	if p.Patron != "" {
		p.Patron = redact.Mask(p.Patron)
	}
	for _, id := range []string{p.UserBarcode, p.UserID} {
		p.Reason = redact.Hide(p.Reason, id, redact.Mask(id))
	}
}
