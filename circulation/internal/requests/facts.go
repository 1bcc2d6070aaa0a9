package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"golang.org/x/sync/errgroup"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	page      = "Page"
	recall    = "Recall"
	hold      = "Hold"
	holdShelf = "Hold Shelf"
	forTitle  = "Title"
)

// facts are what a request is judged by.
type facts struct {
	// records are those of the patron, of the item with its queue, and the rules. The item is the
	// requested one, or the copy that a page for a title takes.
	records  library.Facts
	instance library.Instance
	titled   bool // the instance was found
	pickup   library.ServicePoint
	pickable bool // the pickup service point was found
	loan     openLoan
	proxy    library.User // zero for none
	proxied  []library.ProxyRelation
	policy   policy.RequestPolicy // zero unless there are patron and item
}

// openLoan is the open loan of the item; zero for none.
type openLoan struct {
	ID       string          `json:"id"`
	UserID   string          `json:"userId"`
	LoanDate library.Instant `json:"loanDate"`
	DueDate  library.Instant `json:"dueDate"`
	Recalled bool            `json:"dueDateChangedByRecall"`
}

// readFacts reads what the request is judged by.
func (s *Service) readFacts(ctx context.Context, w wish) (facts, error) {
	subjects := schemas.CheckOutSubjects{UserID: w.record.RequesterID, ItemID: w.record.ItemID}
	if w.record.ItemID == "" && w.record.RequestType == page {
		free, _, err := fault.Found(s.Library.FreeCopy(ctx, w.record.InstanceID))
		if err != nil {
			return facts{}, err
		}
		subjects.ItemID = free.ID
	}
	var f facts
	if err := f.records.ReadSubjects(ctx, s.Library, subjects); err != nil {
		return facts{}, fmt.Errorf("reading what a request is judged by: %w", err)
	}
	g, gctx := errgroup.WithContext(ctx)
	library.FindInto(gctx, g, &f.pickup, &f.pickable, w.record.PickupServicePointID, s.Library.PickupPoint)
	if f.instance = f.records.Copy.Instance; strings.EqualFold(f.instance.ID, w.record.InstanceID) {
		f.titled = true
	} else {
		library.FindInto(gctx, g, &f.instance, &f.titled, w.record.InstanceID, s.Library.Instance)
	}
	if w.proxyID != "" {
		library.FindInto(gctx, g, &f.proxy, new(bool), w.proxyID, s.Library.User)
		g.Go(func() (err error) {
			f.proxied, err = s.Library.ProxyRelations(gctx, w.record.RequesterID, w.proxyID)
			return err
		})
	}
	if f.records.OnLoan {
		g.Go(func() error { return s.readLoan(gctx, &f) })
	}
	if f.records.ItemFound && f.records.User.PatronGroup != "" {
		g.Go(func() error { return s.readPolicy(gctx, &f) })
	}
	if err := g.Wait(); err != nil {
		return facts{}, fmt.Errorf("reading what a request is judged by: %w", err)
	}
	return f, nil
}

// readLoan reads the open loan of the item. A loan that was closed meanwhile is none: the commit
// notices that the item changed.
func (s *Service) readLoan(ctx context.Context, f *facts) error {
	raw, exists, err := fault.Found(s.Library.OpenLoan(ctx, f.records.Copy.Item.ID))
	if err != nil || !exists {
		return err
	}
	if err := json.Unmarshal(raw, &f.loan); err != nil {
		return fmt.Errorf("reading the stored loan: %w", err)
	}
	return nil
}

// readPolicy reads the request policy that the circulation rules choose. Fault: Internal for rules
// that name none.
func (s *Service) readPolicy(ctx context.Context, f *facts) (err error) {
	if f.records.Rules, err = library.ReadRules(ctx, s.Library); err != nil {
		return err
	}
	criteria, err := f.records.Criteria()
	if err != nil {
		return err
	}
	id := f.records.Rules.Match(policy.KindRequest, criteria).PolicyID
	f.policy, err = s.Library.RequestPolicy(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Internal, "Request policy %s could not be found, please check circulation rules", id)
	}
	return err
}

// makePlacement returns the request as it is stored. It has copies of the fields by which lists of
// requests are shown and searched.
func (w wish) makePlacement(f facts) (schemas.Placement, error) {
	doc := maps.Clone(w.doc)
	doc["requester"] = copyPatron(f.records.User)
	if f.proxy.ID != "" {
		doc["proxy"] = copyPatron(f.proxy)
	}
	doc["instance"] = map[string]any{"title": f.instance.Title}
	p := schemas.Placement{TitleLevel: f.records.Queue.TitleLevel}
	delete(doc, "holdingsRecordId")
	if item := f.records.Copy.Item; f.records.ItemFound {
		doc["itemId"], doc["holdingsRecordId"] = item.ID, item.HoldingsRecordID
		doc["item"] = map[string]any{"barcode": item.Barcode}
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
	copied := map[string]any{"lastName": u.Personal.LastName, "firstName": u.Personal.FirstName, "barcode": u.Barcode}
	maps.DeleteFunc(copied, func(_ string, v any) bool { return v == "" })
	return copied
}
