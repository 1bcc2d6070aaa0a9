package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
)

const (
	// maxListed is the most entries of a list in 64 and 66.
	maxListed = 200
	// maxRead is how many loans and requests of a patron are read to be counted.
	maxRead = 2000
)

// account is what a patron has, as 64 counts it.
type account struct {
	overdue, charged, recalled []storedLoan
	ready, waiting             []storedRequest
	loans                      int // all open ones
}

// storedRequest is what machines read of a request.
type storedRequest struct {
	ID          string          `json:"id"`
	Status      string          `json:"status"`
	RequestDate library.Instant `json:"requestDate"`
	ItemID      string          `json:"itemId"`
	Item        struct {
		Barcode string `json:"barcode"`
	} `json:"item"`
	Instance struct {
		Title string `json:"title"`
	} `json:"instance"`
}

// listAccount answers 63 with 64.
func (d *Desk) listAccount(ctx context.Context, v *visit) wire.Answer {
	p, err := d.findPatron(ctx, v)
	if err != nil {
		return d.fail(ctx, v, err)
	}
	var has account
	var list []wire.Field
	if p.User.ID != "" {
		if has, err = d.readAccount(ctx, v, p.User.ID); err == nil {
			list, err = d.chooseList(ctx, v, has)
		}
		if err != nil {
			return d.fail(ctx, v, err)
		}
	}
	count := func(n int) string { return wire.Count(n, 4) }
	a := v.answer("64", v.statusOf(&p), v.Language(), v.date(), count(len(has.ready)), count(len(has.overdue)), count(has.loans),
		count(-1), count(len(has.recalled)), count(len(has.waiting)))
	a.Add("AA", v.Field("AA"))
	a.Add("AE", v.nameOf(p.User))
	d.addStanding(ctx, v, &p, &a, list...)
	return a
}

// readAccount reads the patron's loans and requests, and sorts them as 64 counts them.
func (d *Desk) readAccount(ctx context.Context, v *visit, userID string) (account, error) {
	var has account
	var requests []storedRequest
	g, ctx := library.NewCalls(ctx)
	g.Go(func() (err error) {
		has.charged, has.loans, err = d.readLoans(ctx, userID)
		return err
	})
	g.Go(func() error {
		found, _, err := d.Library.PatronRequests(ctx, userID, maxRead)
		requests = readAll[storedRequest](found)
		return err
	})
	if err := g.Wait(); err != nil {
		return account{}, err
	}
	for _, loan := range has.charged {
		if !loan.DueDate.IsZero() && loan.DueDate.Before(v.now) {
			has.overdue = append(has.overdue, loan)
		}
		if loan.Recalled {
			has.recalled = append(has.recalled, loan)
		}
	}
	slices.SortFunc(requests, func(a, b storedRequest) int {
		return cmp.Or(a.RequestDate.Compare(b.RequestDate.Time), strings.Compare(a.ID, b.ID))
	})
	for _, r := range requests {
		if r.Status == schemas.RequestAwaitingPickup {
			has.ready = append(has.ready, r)
		} else {
			has.waiting = append(has.waiting, r)
		}
	}
	return has, nil
}

// readLoans returns the patron's open loans, those that are due first, and how many there are.
func (d *Desk) readLoans(ctx context.Context, userID string) ([]storedLoan, int, error) {
	found, total, err := d.Library.PatronLoans(ctx, userID, maxRead)
	loans := readAll[storedLoan](found)
	slices.SortFunc(loans, func(a, b storedLoan) int {
		return cmp.Or(a.DueDate.Compare(b.DueDate.Time), strings.Compare(a.ID, b.ID))
	})
	return loans, total, err
}

// readAll reads stored records. One that cannot be read is left out: staff have to mend it.
func readAll[T any](stored []json.RawMessage) []T {
	var all []T
	for _, raw := range stored {
		var record T
		if json.Unmarshal(raw, &record) == nil {
			all = append(all, record)
		}
	}
	return all
}

// readBarcodes returns the barcodes of the items of records by the item's id, in lower case.
func readBarcodes[T any](ctx context.Context, d *Desk, records []T, itemOf func(T) string) (map[string]string, error) {
	items, err := d.Library.Items(ctx, related.IDs(records, itemOf))
	barcodes := make(map[string]string, len(items))
	for _, item := range items {
		barcodes[item.ID] = item.Barcode
	}
	return barcodes, err
}

// chooseList returns the part that the message asks for of the list that it names.
func (d *Desk) chooseList(ctx context.Context, v *visit, has account) ([]wire.Field, error) {
	switch strings.IndexAny(v.Fixed(wire.Summary), "Yy") {
	case 0:
		return d.nameRequests(ctx, "AS", choosePart(v, has.ready))
	case 1:
		return d.nameLoans(ctx, "AT", choosePart(v, has.overdue))
	case 2:
		return d.nameLoans(ctx, "AU", choosePart(v, has.charged))
	case 4:
		return d.nameLoans(ctx, "BU", choosePart(v, has.recalled))
	case 5:
		return d.nameRequests(ctx, "CD", choosePart(v, has.waiting))
	default:
		return nil, nil
	}
}

// nameLoans returns a field with the item's barcode for each loan. Items without one are left out.
func (d *Desk) nameLoans(ctx context.Context, id string, loans []storedLoan) ([]wire.Field, error) {
	barcodes, err := readBarcodes(ctx, d, loans, storedLoan.itemID)
	var list wire.Answer
	for _, loan := range loans {
		list.AddFilled(id, barcodes[strings.ToLower(loan.ItemID)])
	}
	return list.Fields, err
}

// nameRequests returns a field for each request: the item's barcode, else that of its copy, else the title.
func (d *Desk) nameRequests(ctx context.Context, id string, requests []storedRequest) ([]wire.Field, error) {
	barcodes, err := readBarcodes(ctx, d, requests, func(r storedRequest) string { return r.ItemID })
	var list wire.Answer
	for _, r := range requests {
		list.AddFilled(id, cmp.Or(barcodes[strings.ToLower(r.ItemID)], r.Item.Barcode, r.Instance.Title))
	}
	return list.Fields, err
}

// choosePart returns the entries from BP to BQ, which count from 1. Without them, or with ones that
// make no sense, it begins with the first entry. It never returns more than maxListed.
func choosePart[T any](v *visit, all []T) []T {
	from, _ := v.Number("BP") // 0 for none
	to, _ := v.Number("BQ")
	if from = max(from, 1); to < from {
		to = from + maxListed
	}
	from = min(from-1, len(all))
	return all[from:min(to, from+maxListed, len(all))]
}
