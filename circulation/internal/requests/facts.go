package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	holdShelf = "Hold Shelf"
	forTitle  = "Title"
)

// facts are what a request is judged by.
type facts struct {
	// records are those of the patron, of the item with its queue, and the rules. The item is the
	// requested one, or the copy that a page or a recall for a title takes.
	records  library.Facts
	title    titleFacts
	instance library.Instance     // zero for none
	pickup   library.ServicePoint // zero for none
	// retrieval is the primary service point of the item's location; zero for none.
	retrieval      library.ServicePoint
	loan           library.OpenLoan // of the item; zero for none
	proxy          library.User     // zero for none
	proxyRelations []library.ProxyRelation
	policy         policy.RequestPolicy // zero unless there are patron and item
}

// readFacts reads what the request is judged by.
func (s *Service) readFacts(ctx context.Context, w wish) (facts, error) {
	subjects := schemas.CheckOutSubjects{UserID: w.record.RequesterID, ItemID: w.record.ItemID}
	var f facts
	var err error
	if f.title, err = s.readTitle(ctx, w); err != nil {
		return facts{}, err
	}
	if w.isOfAnyCopy() {
		subjects.ItemID = f.title.chosen.ID
	}
	if f.records, err = library.ReadFacts(ctx, s.Library, subjects); err != nil {
		return facts{}, fmt.Errorf("reading what a request is judged by: %w", err)
	}
	g, gctx := library.NewCalls(ctx)
	library.FindInto(gctx, g, &f.pickup, w.record.PickupServicePointID, s.Library.PickupPoint)
	if strings.EqualFold(f.records.Instance.ID, w.record.InstanceID) {
		f.instance = f.records.Instance
	} else {
		library.FindInto(gctx, g, &f.instance, w.record.InstanceID, s.Library.Instance)
	}
	library.FindInto(gctx, g, &f.retrieval, f.records.Location.PrimaryServicePoint, s.Library.PickupPoint)
	s.readProxy(gctx, g, w, &f)
	if f.records.IsOnLoan() {
		g.Go(func() (err error) {
			f.loan, err = s.readLoan(gctx, f.records.Item.ID)
			return err
		})
	}
	if f.records.Item.ID != "" && f.records.User.PatronGroup != "" {
		g.Go(func() (err error) {
			f.records.Rules, f.policy, err = s.readPolicy(gctx, f.records)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return facts{}, fmt.Errorf("reading what a request is judged by: %w", err)
	}
	return f, nil
}

// readProxy adds calls that read who requests for the patron.
func (s *Service) readProxy(ctx context.Context, g *library.Calls, w wish, f *facts) {
	if w.proxyID == "" {
		return
	}
	library.FindInto(ctx, g, &f.proxy, w.proxyID, s.Library.User)
	g.Go(func() (err error) {
		f.proxyRelations, err = s.Library.ProxyRelations(ctx, w.record.RequesterID, w.proxyID)
		return err
	})
}

// readLoan reads the open loan of the item. A loan that was closed meanwhile is none: the commit
// notices that the item changed.
func (s *Service) readLoan(ctx context.Context, itemID string) (l library.OpenLoan, err error) {
	raw, exists, err := fault.Found(s.Library.OpenLoan(ctx, itemID))
	if err != nil || !exists {
		return l, err
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, fmt.Errorf("reading the stored loan: %w", err)
	}
	return l, nil
}

// readPolicy reads the circulation rules, and the request policy that they choose. Fault: Internal
// for rules that name none.
func (s *Service) readPolicy(ctx context.Context, records library.Facts) (rules *policy.Rules, p policy.RequestPolicy, err error) {
	if rules, err = library.ReadRules(ctx, s.Library); err != nil {
		return nil, p, err
	}
	criteria, err := records.Criteria()
	if err != nil {
		return nil, p, err
	}
	p, err = s.findPolicy(ctx, rules, criteria)
	return rules, p, err
}

// makePlacement returns the request as it is stored. It has copies of the fields by which lists of
// requests are shown and searched.
func (w wish) makePlacement(f facts) (schemas.Placement, error) {
	doc := maps.Clone(w.doc)
	doc["requester"] = copyPatron(f.records.User)
	if f.proxy.ID != "" {
		doc["proxy"] = copyPatron(f.proxy)
	}
	doc["instance"] = leaveOutEmpty(map[string]any{"title": f.instance.Title, "identifiers": f.instance.Identifiers})
	delete(doc, "searchIndex")
	if searched := f.copySearched(); len(searched) > 0 {
		doc["searchIndex"] = searched
	}
	p := schemas.Placement{TitleLevel: f.records.TitleLevel}
	delete(doc, "holdingsRecordId")
	if item := f.records.Item; item.ID != "" {
		doc["itemId"], doc["holdingsRecordId"] = item.ID, item.HoldingsRecordID
		doc["item"] = f.copyItem()
		p.ItemVersion = &item.Version
	}
	var err error
	if p.Request, err = json.Marshal(doc); err != nil {
		return schemas.Placement{}, fmt.Errorf("writing the request: %w", err)
	}
	return p, nil
}

// copyPatron returns the fields of a patron that a request has copies of.
func copyPatron(u library.User) map[string]any {
	return leaveOutEmpty(map[string]any{
		"lastName": u.Personal.LastName, "firstName": u.Personal.FirstName, "middleName": u.Personal.MiddleName, "barcode": u.Barcode,
	})
}

// copyItem returns the fields of the item and its location that a request has copies of.
func (f facts) copyItem() map[string]any {
	item, location := f.records.Item, f.records.Location
	return leaveOutEmpty(map[string]any{
		"barcode": item.Barcode, "loanTypeId": item.LoanTypeID(), "itemEffectiveLocationId": location.ID, "itemEffectiveLocationName": location.Name,
		"retrievalServicePointId": f.retrieval.ID, "retrievalServicePointName": f.retrieval.Name,
	})
}

// copySearched returns the fields by which FOLIO's lists of requests are sorted and searched.
func (f facts) copySearched() map[string]any {
	item := f.records.Item
	return leaveOutEmpty(map[string]any{
		"callNumberComponents": item.CallNumber, "shelvingOrder": cmp.Or(item.ShelvingOrder, item.CallNumber.CallNumber), "pickupServicePointName": f.pickup.Name,
	})
}

func leaveOutEmpty(copied map[string]any) map[string]any {
	maps.DeleteFunc(copied, func(_ string, v any) bool { return v == nil || reflect.ValueOf(v).IsZero() })
	return copied
}

// recallLoan returns the due date that the recall gives the item's open loan. A loan that was
// recalled before keeps its date.
func (s *Service) recallLoan(ctx context.Context, f facts) (*schemas.LoanRecall, error) {
	due := f.loan.DueDate.Time
	if !f.loan.Recalled || due.IsZero() {
		var err error
		if due, err = s.computeDueDate(ctx, f); err != nil {
			return nil, err
		}
	}
	r := &schemas.LoanRecall{LoanID: f.loan.ID, DueDate: library.Instant{Time: due}.Text()}
	if judged := f.loan.DueDate; !judged.IsZero() {
		r.JudgedDueDate = judged.Format(time.RFC3339Nano)
		if due.Equal(judged.Time) {
			r.DueDate = r.JudgedDueDate // with its fractions of milliseconds
		}
	}
	return r, nil
}

// computeDueDate returns the due date by the policy that the rules choose now for the borrower, as
// FOLIO does. Fault: Invalid if the policy gives none.
func (s *Service) computeDueDate(ctx context.Context, f facts) (time.Time, error) {
	lent := f.records
	var err error
	if lent.User, _, err = fault.Found(s.Library.User(ctx, f.loan.UserID)); err != nil {
		return time.Time{}, err
	}
	criteria, err := lent.Criteria()
	if err != nil {
		return time.Time{}, err
	}
	id := lent.Rules.Match(policy.KindLoan, criteria).PolicyID
	return library.ComputeRecall(ctx, s.Library, id, policy.RecallTerms{
		Now: s.Now().UTC(), LoanDate: f.loan.LoanDate.UTC(), DueDate: f.loan.DueDate.UTC(), PatronExpires: lent.User.ExpirationDate.Time,
		Lent: true,
	})
}
