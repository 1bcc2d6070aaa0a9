package library

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Facts are the records that a check-out, a check-in or a renewal is judged by. A record that does
// not exist is empty, its ID too. Those with a JSON name are storage's answer as of one moment
// (schemas.CheckOutFacts); the others may be two seconds old.
type Facts struct {
	User            User                 `json:"user"`
	Group           Group                `json:"-"`
	ManualBlocks    []ManualBlock        `json:"manualBlocks"`
	AutomatedBlocks AutomatedBlocks      `json:"automatedBlocks"`
	OpenLoans       []schemas.OpenLoans  `json:"openLoans"`   // of the user, as limits count
	BlockLimits     []schemas.BlockLimit `json:"blockLimits"` // of the user's group that block borrowing, reached or not

	Proxy          User            `json:"proxyUser"`      // who borrows for the user
	ProxyRelations []ProxyRelation `json:"proxyRelations"` // of proxy and user, also ended ones

	Item     Item     `json:"item"`
	Holdings Holdings `json:"holdings"`
	Instance Instance `json:"instance"`
	Location Location `json:"-"`
	Material Named    `json:"-"`
	OnLoan   *bool    `json:"onLoan"` // the item has an open loan; nil means no
	// OnLoanToUser says that the open loan is the user's.
	OnLoanToUser bool `json:"onLoanToUser"`

	// Requests are the open ones of the queue that the item is in: its own, or with TitleLevel that
	// of its instance, with those for the item that were made while it was another instance's.
	Requests   []schemas.QueuedRequest `json:"requests"`
	TitleLevel bool                    `json:"-"` // requests for titles are switched on

	Slip  Slip          `json:"slip"` // only for a check-in
	Rules *policy.Rules `json:"-"`    // nil before the rules were read

	// ReferenceVersion changes with the records that are cached. Empty is unknown.
	ReferenceVersion string `json:"referenceVersion"`
	// ReadAt is when they were read, by the database's clock. A storage of an earlier build sends none.
	ReadAt Instant `json:"readAt"`
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

// ReadFacts reads what the subjects name and what belongs to it: in one call what must be current,
// and then the records that are cached, one by one, because few are missing there. If it fails, the
// facts are what was found until then.
func ReadFacts(ctx context.Context, records Records, subjects schemas.CheckOutSubjects) (Facts, error) {
	facts, err := readCurrent(ctx, records, subjects)
	if err != nil {
		return facts, err
	}
	if err := readInto(ctx, &facts.Group, facts.User.PatronGroup, records.Group); err != nil {
		return facts, err
	}
	return facts, facts.readShelf(ctx, records)
}

// readCurrent reads what must be current.
func readCurrent(ctx context.Context, records Records, subjects schemas.CheckOutSubjects) (Facts, error) {
	titleLevel, err := records.TitleLevelRequests(ctx)
	if err != nil {
		return Facts{}, err
	}
	subjects.TitleLevel = titleLevel
	subjects.UserBarcode, subjects.ProxyUserBarcode = KeepBarcode(subjects.UserBarcode), KeepBarcode(subjects.ProxyUserBarcode)
	subjects.ItemBarcode = KeepBarcode(subjects.ItemBarcode)
	facts, err := records.Snapshot(ctx, subjects)
	facts.TitleLevel = titleLevel
	return facts, err
}

// ReloadItem returns f with the item read again by its id, and everything that belongs to it. The
// user's open loans are counted again. servicePointID is where the item is checked in; empty except
// for a check-in.
func (f Facts) ReloadItem(ctx context.Context, records Records, servicePointID string) (Facts, error) {
	seen, err := readCurrent(ctx, records, schemas.CheckOutSubjects{ItemID: f.Item.ID, UserID: f.User.ID, ServicePointID: servicePointID})
	if err == nil && seen.Item.ID == "" {
		err = fault.New(fault.NotFound, "No item has the id %s", f.Item.ID)
	}
	if err != nil {
		return f, fmt.Errorf("reading the changed item again: %w", err)
	}
	if seen.User.ID == "" { // deleted meanwhile
		seen.OpenLoans, seen.BlockLimits = f.OpenLoans, f.BlockLimits
	}
	seen.User, seen.Group, seen.ManualBlocks, seen.AutomatedBlocks = f.User, f.Group, f.ManualBlocks, f.AutomatedBlocks
	seen.Proxy, seen.ProxyRelations, seen.Rules = f.Proxy, f.ProxyRelations, f.Rules
	if err := seen.readShelf(ctx, records); err != nil {
		return f, fmt.Errorf("reading what belongs to the changed item: %w", err)
	}
	return seen, nil
}

// readShelf reads location and material type of the item.
func (f *Facts) readShelf(ctx context.Context, records Records) error {
	if err := readInto(ctx, &f.Location, f.Item.EffectiveLocationID, records.Location); err != nil {
		return err
	}
	return readInto(ctx, &f.Material, f.Item.MaterialTypeID, func(ctx context.Context, id string) (Named, error) {
		return records.Named(ctx, MaterialType, id)
	})
}

// Copy returns the item and the records that it belongs to.
func (f *Facts) Copy() Copy {
	return Copy{Item: f.Item, Holdings: f.Holdings, Instance: f.Instance, Location: f.Location, Material: f.Material}
}

// FindInto adds a call of readInto.
func FindInto[T any](ctx context.Context, g *Calls, to *T, id string, find func(context.Context, string) (T, error)) {
	if id != "" {
		g.Go(func() error { return readInto(ctx, to, id, find) })
	}
}

// readInto reads a record into to. A record that does not exist makes it zero; an empty id leaves it
// as it is.
func readInto[T any](ctx context.Context, to *T, id string, find func(context.Context, string) (T, error)) (err error) {
	if id != "" {
		*to, _, err = fault.Found(find(ctx, id))
	}
	return err
}

// IsOnLoan reports whether the item has an open loan.
func (f *Facts) IsOnLoan() bool { return f.OnLoan != nil && *f.OnLoan }

// FindLent returns the first request that keeps the item back from a check-out or is filled by it;
// false if there is none.
func (f *Facts) FindLent() (schemas.QueuedRequest, bool) {
	return schemas.FirstLentTo(f.Requests, f.Item.ID, f.Holdings.InstanceID, f.TitleLevel)
}

// FindRecall returns the first open recall of the item, besides the request with the id filled;
// false if there is none.
func (f *Facts) FindRecall(filled string) (schemas.QueuedRequest, bool) {
	for _, r := range f.Requests {
		if r.ID != filled && r.Recalls(f.Item.ID) {
			return r, true
		}
	}
	return schemas.QueuedRequest{}, false
}

// HasHold reports whether a hold that is not yet filled waits for the item, besides the request
// with the id filled.
func (f *Facts) HasHold(filled string) bool {
	return slices.ContainsFunc(f.Requests, func(r schemas.QueuedRequest) bool {
		return r.ID != filled && r.RequestType == schemas.RequestHold && r.Status == schemas.RequestNotYetFilled &&
			r.FilledBy(f.Item.ID, f.Holdings.InstanceID, f.TitleLevel)
	})
}

// ReadRules returns the tenant's circulation rules. Fault: Internal for rules that are blank or do
// not compile.
func ReadRules(ctx context.Context, records Records) (*policy.Rules, error) {
	found, err := records.Rules(ctx)
	if syntax, ok := errors.AsType[*policy.SyntaxError](err); ok {
		return nil, fault.Wrap(err, fault.Internal, "%s", syntax.Message)
	}
	return found, err
}

// Matching looks up what the circulation rules choose.
type Matching struct{ Records Records }

// RulesFor returns the tenant's circulation rules, and c completed with the library, campus and
// institution of its location. A location without a record belongs to none, as at a check-out.
// Fault: that of ReadRules.
func (m Matching) RulesFor(ctx context.Context, c policy.Criteria) (*policy.Rules, policy.Criteria, error) {
	rules, err := ReadRules(ctx, m.Records)
	if err != nil {
		return nil, c, err
	}
	location, _, err := fault.Found(m.Records.Location(ctx, c.Location))
	if err != nil {
		return nil, c, fmt.Errorf("finding the location: %w", err)
	}
	c.Library, c.Campus, c.Institution = location.LibraryID, location.CampusID, location.InstitutionID
	return rules, c, nil
}

// ReadSchedule returns the fixed due date schedule that a loan policy names. A policy that names
// none has the zero schedule.
func ReadSchedule(ctx context.Context, records Records, id, policyID string) (policy.FixedSchedule, error) {
	if id == "" {
		return policy.FixedSchedule{}, nil
	}
	schedule, err := records.FixedSchedule(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(err, fault.Internal, "Fixed due date schedule %s of the loan policy %s could not be found", id, policyID)
	}
	return schedule, err
}

// maxBarcode is the number of characters of the longest barcode that storage accepts.
const maxBarcode = 600

// KeepUUID returns an id that a record can have, else "". Requests and rules may name records by any
// text.
func KeepUUID(id string) string {
	if !schemas.IsUUID(id) {
		return ""
	}
	return id
}

// KeepBarcode returns a barcode that a record can have, else "", which needs no call to storage.
func KeepBarcode(barcode string) string {
	if utf8.RuneCountInString(barcode) > maxBarcode || strings.ContainsRune(barcode, 0) {
		return ""
	}
	return barcode
}
