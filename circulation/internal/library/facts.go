package library

import (
	"context"
	"fmt"
	"strings"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Snapshot is what storage has on the subjects of a check-out, as of one moment. A record that does
// not exist is nil or empty.
type Snapshot struct {
	User            *User           `json:"user"`
	ProxyUser       *User           `json:"proxyUser"`
	ProxyRelations  []ProxyRelation `json:"proxyRelations"` // by which the proxy may borrow for the user, also ended ones
	ManualBlocks    []ManualBlock   `json:"manualBlocks"`
	AutomatedBlocks AutomatedBlocks `json:"automatedBlocks"`

	Item     *Item                   `json:"item"`
	Holdings Holdings                `json:"holdings"`
	Instance Instance                `json:"instance"`
	OnLoan   *bool                   `json:"onLoan"`   // the item has an open loan; nil means no
	Requests []schemas.QueuedRequest `json:"requests"` // the open ones of the item's queue

	// OpenLoans counts the user's open loans as limits do.
	OpenLoans []schemas.OpenLoans `json:"openLoans"`
	// BlockLimits are those of the user's group that block borrowing, reached or not.
	BlockLimits []schemas.BlockLimit `json:"blockLimits"`

	Slip Slip `json:"slip"` // only for a check-in
}

// Slip has the records that a staff slip names and a check-in reads besides the others. A record that
// does not exist is empty.
type Slip struct {
	LoanType    Named `json:"loanType"`
	Library     Named `json:"library"`
	Campus      Named `json:"campus"`
	Institution Named `json:"institution"`
	// Requester is the patron of the first request that the item can fill.
	Requester User  `json:"requester"`
	Group     Group `json:"group"` // of Requester
	// ServicePoints are that of the check-in, the location's primary one, and those of the requests.
	ServicePoints []ServicePoint `json:"servicePoints"`
}

// FindServicePoint returns a service point by id; the zero one if it does not exist.
func (s Slip) FindServicePoint(id string) ServicePoint {
	for _, p := range s.ServicePoints {
		if strings.EqualFold(p.ID, id) {
			return p
		}
	}
	return ServicePoint{}
}

// Facts are the records that a check-out, a check-in or a renewal is judged by. A record that does
// not exist is empty.
type Facts struct {
	User            User
	UserFound       bool
	Group           Group
	ManualBlocks    []ManualBlock
	AutomatedBlocks []AutomatedBlock
	OpenLoans       []schemas.OpenLoans  // of the user, as limits count
	BlockLimits     []schemas.BlockLimit // of the user's group

	Proxy          User // who borrows for the user
	ProxyFound     bool
	ProxyRelations []ProxyRelation // of proxy and user, also ended ones

	Copy      Copy
	ItemFound bool
	OnLoan    bool // the item has an open loan
	Queue     Queue
	Slip      Slip

	// servicePointID is where the item is checked in; empty except for a check-in.
	servicePointID string

	Rules *policy.Rules // nil before the rules were read
}

// Queue is the queue of requests that an item is in: its own, or with title-level requests that of
// its instance.
type Queue struct {
	TitleLevel bool // requests for titles are switched on
	Requests   []schemas.QueuedRequest
}

// ReadReturn reads what a check-in of the item at the service point is judged by.
func (f *Facts) ReadReturn(ctx context.Context, records Records, itemBarcode, servicePointID string) error {
	f.servicePointID = servicePointID
	return f.Read(ctx, records, "", "", itemBarcode)
}

// Read reads what the barcodes name and what belongs to it: in one call what must be current, and
// then the records that are cached. If it fails, f has what was found until then.
func (f *Facts) Read(ctx context.Context, records Records, userBarcode, proxyBarcode, itemBarcode string) error {
	return f.ReadSubjects(ctx, records, schemas.CheckOutSubjects{
		UserBarcode: KeepBarcode(userBarcode), ProxyUserBarcode: KeepBarcode(proxyBarcode), ItemBarcode: KeepBarcode(itemBarcode),
		ServicePointID: f.servicePointID,
	})
}

// ReadSubjects is Read for subjects by barcode or id.
func (f *Facts) ReadSubjects(ctx context.Context, records Records, subjects schemas.CheckOutSubjects) (err error) {
	if f.Queue.TitleLevel, err = records.TitleLevelRequests(ctx); err != nil {
		return err
	}
	subjects.TitleLevel = f.Queue.TitleLevel
	seen, err := records.Snapshot(ctx, subjects)
	if err != nil {
		return err
	}
	if seen.User != nil {
		f.User, f.UserFound = *seen.User, true
	}
	if seen.ProxyUser != nil {
		f.Proxy, f.ProxyFound = *seen.ProxyUser, true
	}
	f.ProxyRelations, f.OpenLoans, f.BlockLimits = seen.ProxyRelations, seen.OpenLoans, seen.BlockLimits
	f.ManualBlocks, f.AutomatedBlocks = seen.ManualBlocks, seen.AutomatedBlocks.Blocks
	f.noteItem(seen)
	g, ctx := NewCalls(ctx)
	FindInto(ctx, g, &f.Group, f.User.PatronGroup, records.Group)
	f.readShelf(ctx, g, records)
	return g.Wait()
}

// ReloadItem reads the item by its id, and everything that belongs to it as it is now. It counts
// the user's open loans again.
func (f *Facts) ReloadItem(ctx context.Context, records Records) error {
	id := f.Copy.Item.ID
	titleLevel, err := records.TitleLevelRequests(ctx)
	if err != nil {
		return fmt.Errorf("reading again whether titles are requested: %w", err)
	}
	seen, err := records.Snapshot(ctx, schemas.CheckOutSubjects{ItemID: id, UserID: f.User.ID, TitleLevel: titleLevel, ServicePointID: f.servicePointID})
	if err == nil && seen.Item == nil {
		err = fault.New(fault.NotFound, "No item has the id %s", id)
	}
	if err != nil {
		return fmt.Errorf("reading the changed item again: %w", err)
	}
	f.Queue.TitleLevel = titleLevel
	f.noteItem(seen)
	if seen.User != nil { // not deleted meanwhile
		f.OpenLoans, f.BlockLimits = seen.OpenLoans, seen.BlockLimits
	}
	g, ctx := NewCalls(ctx)
	f.readShelf(ctx, g, records)
	if err := g.Wait(); err != nil {
		return fmt.Errorf("reading what belongs to the changed item: %w", err)
	}
	return nil
}

// noteItem takes over what belongs to the item. What the item no longer has is empty then.
func (f *Facts) noteItem(seen Snapshot) {
	f.Copy = Copy{Holdings: seen.Holdings, Instance: seen.Instance}
	if seen.Item != nil {
		f.Copy.Item, f.ItemFound = *seen.Item, true
	}
	f.OnLoan, f.Queue.Requests, f.Slip = seen.OnLoan != nil && *seen.OnLoan, seen.Requests, seen.Slip
}

// readShelf adds calls that read location and material type of the item.
func (f *Facts) readShelf(ctx context.Context, g *Calls, records Records) {
	FindInto(ctx, g, &f.Copy.Location, f.Copy.Item.EffectiveLocationID, records.Location)
	FindInto(ctx, g, &f.Copy.Material, f.Copy.Item.MaterialTypeID, records.MaterialType)
}

// FindInto adds a call that reads a record into to. A record that does not exist makes it zero; an
// empty id leaves it as it is.
func FindInto[T any](ctx context.Context, g *Calls, to *T, id string, find func(context.Context, string) (T, error)) {
	if id == "" {
		return
	}
	g.Go(func() (err error) {
		*to, _, err = fault.Found(find(ctx, id))
		return err
	})
}

// FindFirst returns the first request that the copy can fill when it comes back; false if there is none.
func (q Queue) FindFirst(c Copy) (schemas.QueuedRequest, bool) {
	return schemas.FirstFilledBy(q.Requests, c.Item.ID, c.Holdings.InstanceID, q.TitleLevel)
}

// FindLent returns the first request that keeps the copy back from a check-out or is filled by it;
// false if there is none.
func (q Queue) FindLent(c Copy) (schemas.QueuedRequest, bool) {
	return schemas.FirstLentTo(q.Requests, c.Item.ID, c.Holdings.InstanceID, q.TitleLevel)
}

// FindRecall returns the first open recall of the copy, besides the request with the id filled;
// false if there is none.
func (q Queue) FindRecall(c Copy, filled string) (schemas.QueuedRequest, bool) {
	for _, r := range q.Requests {
		if r.ID != filled && r.Recalls(c.Item.ID) {
			return r, true
		}
	}
	return schemas.QueuedRequest{}, false
}

// HasHold reports whether a hold that is not yet filled waits for the copy, besides the request
// with the id filled.
func (q Queue) HasHold(c Copy, filled string) bool {
	for _, r := range q.Requests {
		if r.ID != filled && r.RequestType == schemas.RequestHold && r.Status == schemas.RequestNotYetFilled &&
			r.FilledBy(c.Item.ID, c.Holdings.InstanceID, q.TitleLevel) {
			return true
		}
	}
	return false
}
