package staff

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas/fault"
)

// The page Try a check-out: what would become of one.

type tryPage struct {
	Action              string
	Item, Patron, Other field
	Problems            []field
	Failure             string // why nobody can say
	Result              *tryResult
}

type tryResult struct {
	checkout.Explanation
	Due string // RFC 3339; empty when it would not be lent
}

// RuleNames lists what the deciding rule names of what an item limit depends on.
func (r tryResult) RuleNames() string {
	names := make([]string, len(r.Rule.Names))
	for i, n := range r.Rule.Names {
		names[i] = r.Word(n)
	}
	return strings.Join(names, ", ")
}

// Word is what people call what a rule names.
func (tryResult) Word(kind string) string {
	words := map[string]string{"materialType": "material type", "loanType": "loan type", "patronGroup": "patron group", "loanPolicy": "loan policy"}
	return cmp.Or(words[kind], kind)
}

// Unlimited tells whether no item limit can apply, whatever the policy says: FOLIO
// counts one only where the rule names a material type or a loan type.
func (r tryResult) Unlimited() bool {
	return r.Rule != nil && !slices.Contains(r.Rule.Names, "materialType") && !slices.Contains(r.Rule.Names, "loanType")
}

// try handles GET /staff/{tenant}/try.
func (p *Pages) try(v *visit) error {
	page := readTryForm(v.QueryParams())
	page.Action = v.path("/try")
	show := func(status int) error { return v.show(status, "try.html", "/try", "Try a check-out", page) }
	switch {
	case len(page.Problems) > 0:
		return show(http.StatusUnprocessableEntity)
	case page.Item.Value == "":
		return show(http.StatusOK)
	}
	found, err := p.Admin.Explain(v.ctx(), checkout.DryRunRequest{
		ItemBarcode: page.Item.Value, UserBarcode: page.Patron.Value, ProxyUserBarcode: page.Other.Value,
	})
	if err == nil {
		page.Result = &tryResult{Explanation: found}
		if found.DueDate != nil {
			page.Result.Due = found.DueDate.Format(time.RFC3339)
		}
		return show(http.StatusOK)
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	// Rules that cannot be used, say: whoever tries wants to know just that.
	page.Failure = f.Msg
	v.Response().Header().Set(fault.Header, string(f.Code))
	if shown := show(fault.Status(f.Code)); shown != nil {
		return shown
	}
	return err // to the log
}

// readTryForm reads the form; one that nobody has filled in yet is empty, without
// problems.
func readTryForm(q url.Values) tryPage {
	page := tryPage{
		Item:   barcodeField(q, "itemBarcode", "Item's barcode"),
		Patron: barcodeField(q, "userBarcode", "Patron's barcode"),
		Other:  barcodeField(q, "proxyUserBarcode", "Proxy's barcode, if somebody borrows for the patron"),
	}
	page.Item.Required, page.Patron.Required = true, true
	if q.Has(page.Item.Name) || q.Has(page.Patron.Name) {
		if page.Item.Value == "" {
			page.Item.Wrong = "Type or scan the item's barcode."
		}
		if page.Patron.Value == "" {
			page.Patron.Wrong = "Type or scan the patron's barcode."
		}
	}
	page.Problems = problems(page.Item, page.Patron, page.Other)
	return page
}
