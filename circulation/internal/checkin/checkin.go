// Package checkin takes items back, and ends the sessions of patrons at a desk.
package checkin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/schemas/okapi"
)

// resolutions maps FOLIO's claimedReturnedResolution to the action of the loan that it closes.
var resolutions = map[string]string{
	"Found by library":   "checkedInFoundByLibrary",
	"Returned by patron": "checkedInReturnedByPatron",
}

// CodeClaimedReturned is FOLIO's code for an item that is claimed returned.
const CodeClaimedReturned = "ITEM_CLAIMED_RETURNED"

// Request is the body of POST /circulation/check-in-by-barcode. Unknown properties are ignored.
type Request struct {
	ItemBarcode    string `json:"itemBarcode"`
	ServicePointID string `json:"servicePointId"`
	CheckInDate    string `json:"checkInDate"`
	// ClaimedReturnedResolution says how a claimed return ended. Only an item that is claimed
	// returned needs it.
	ClaimedReturnedResolution string `json:"claimedReturnedResolution"`
	// SessionID names the session at the desk, for its record; optional.
	SessionID string `json:"sessionId"`
	// FillNoRequest refuses the check-in of an item that a request waits for. FOLIO has none such.
	FillNoRequest bool `json:"-"`
	// Seen is the version of the item that the caller judged; nil for any.
	Seen *int `json:"-"`

	library.Sent `json:"-"`
}

// Returned is a check-in that happened: what is stored now, and the records that the answer is made
// of.
type Returned struct {
	Loan        json.RawMessage // the closed loan; empty if the item was not on loan
	Copy        library.Copy
	Destination library.ServicePoint // where the item is in transit to
	InHouseUse  bool                 // the item was at home and available, and its queue is empty

	// Request is the request that the item was set aside for; nil for none.
	Request *schemas.QueuedRequest
	At      library.ServicePoint // where it was checked in
	Slip    library.Slip
}

// Returner writes a check-in wholly or not at all, and answers a repeat with the same id like the
// first. Faults that say it did not happen are those of a check-out's commit except the two about
// locks.
type Returner interface {
	CheckIn(ctx context.Context, c schemas.CheckIn) (schemas.CheckInResult, error)
}

// Service takes items back. It needs no lock, because a check-in only lowers a patron's count. All
// fields are required.
type Service struct {
	Library  library.Records
	Returner Returner
	Log      *slog.Logger
}

// CheckIn takes an item back. The first request that the item can fill gets it: the item waits on
// the hold shelf or goes In transit to the pickup service point. Without a request it becomes
// Available at a service point that serves its location, else In transit to the location's primary
// one.
//
// Faults: Invalid with FOLIO's messages; ItemChanged and RequestChanged if the item or its queue
// keeps changing, or changed once after it was seen; any other answer of storage. A check-in whose
// outcome is unknown may be sent again.
func (s *Service) CheckIn(ctx context.Context, req Request) (Returned, error) {
	date, err := req.check(okapi.FromContext(ctx).UserID)
	if err != nil {
		return Returned{}, err
	}
	subjects := schemas.CheckOutSubjects{ItemBarcode: req.ItemBarcode, ServicePointID: req.ServicePointID}
	facts, err := library.ReadFacts(ctx, s.Library, subjects)
	if err != nil {
		return Returned{}, fmt.Errorf("reading the item: %w", err)
	}
	if facts.Item.ID == "" {
		return Returned{}, fault.Validation(library.NewBarcodeUnknown(req.ItemBarcode))
	}
	if req.Seen != nil && *req.Seen != facts.Item.Version {
		return Returned{}, fault.New(fault.ItemChanged, "The item was changed meanwhile")
	}
	commit := schemas.CheckIn{
		ID: uuid.NewString(), ItemID: facts.Item.ID, ServicePointID: req.ServicePointID, CheckInDate: date.Text(),
		StaffMemberID: okapi.FromContext(ctx).UserID, SessionID: req.SessionID,
	}
	returned, err := s.checkInItem(ctx, req, &facts, commit)
	if req.Seen != nil || !fault.Is(err, fault.ItemChanged) && !fault.Is(err, fault.RequestChanged) {
		return returned, err
	}
	if facts, err = facts.ReloadItem(ctx, s.Library, req.ServicePointID); err != nil {
		return Returned{}, err
	}
	return s.checkInItem(ctx, req, &facts, commit)
}

// check returns the check-in date, or everything that is wrong with the request by itself.
func (r Request) check(userID string) (library.Instant, error) {
	var found fault.List
	refuse := func(key, message string) {
		found = append(found, r.NewMissing(library.CodeMissing, key, message))
	}
	if userID == "" {
		found = append(found, fault.Refusal("NO_LOGGED_IN_USER", "No logged-in user present", fault.Parameter{Key: "userId"}))
	}
	if strings.TrimSpace(r.ItemBarcode) == "" {
		refuse("itemBarcode", "Checkin request must have an item barcode")
	}
	if r.ServicePointID == "" {
		refuse("servicePointId", "Checkin request must have a service point id")
	} else {
		found = append(found, library.CheckUUID("servicePointId", r.ServicePointID)...)
	}
	var date library.Instant
	if r.CheckInDate == "" {
		refuse("checkInDate", "Checkin request must have an check in date")
	} else if t, err := jsonschema.ParseTime(r.CheckInDate); err != nil {
		found = append(found, fault.Refusal("", "checkInDate "+err.Error(), fault.Param("checkInDate", r.CheckInDate)))
	} else {
		date = library.Instant{Time: t}
	}
	if r.SessionID != "" {
		found = append(found, library.CheckUUID("sessionId", r.SessionID)...)
	}
	if _, known := resolutions[r.ClaimedReturnedResolution]; !known && r.ClaimedReturnedResolution != "" {
		found = append(found, fault.Refusal("", "Unrecognized value provided for property",
			fault.Param("claimedReturnedResolution", r.ClaimedReturnedResolution)))
	}
	if err := found.Err(); err != nil {
		return library.Instant{}, err
	}
	return date, nil
}

// checkInItem judges the item as it was read, completes the commit and sends it.
func (s *Service) checkInItem(ctx context.Context, req Request, facts *library.Facts, commit schemas.CheckIn) (Returned, error) {
	book, item := facts.Copy(), facts.Item
	if err := checkStatus(book, req).Err(); err != nil {
		return Returned{}, err
	}
	commit.ItemVersion = item.Version
	if item.Status.Name == library.StatusClaimedReturned {
		commit.LoanAction = resolutions[req.ClaimedReturnedResolution]
	}
	commit, request, err := chooseDestination(facts, commit)
	if err != nil {
		return Returned{}, err
	}
	if request != nil && req.FillNoRequest {
		return Returned{}, fault.Validation(fault.Refusal(library.CodeItemRequested, "A request waits for the item",
			fault.Param("itemBarcode", req.ItemBarcode)))
	}
	returned := Returned{
		Copy: book, Request: request, Slip: facts.Slip, At: facts.Slip.FindServicePoint(req.ServicePointID),
		Destination: facts.Slip.FindServicePoint(commit.InTransitDestinationServicePointID),
	}
	result, err := s.sendCommit(ctx, commit)
	if err != nil {
		return Returned{}, err
	}
	if string(result.Loan) != "null" {
		returned.Loan = result.Loan
	}
	queued := func(r schemas.QueuedRequest) bool { return facts.TitleLevel || r.RequestLevel != "Title" }
	home := commit.ItemStatus == library.StatusAvailable && item.Status.Name == library.StatusAvailable
	returned.InHouseUse = home && len(returned.Loan) == 0 && !slices.ContainsFunc(facts.Requests, queued)
	var stored library.Item // an empty one, so that it lacks what storage removed
	if err := json.Unmarshal(result.Item, &stored); err != nil {
		s.Log.ErrorContext(ctx, "storage answered an item that cannot be read", "err", err)
		return returned, nil
	}
	returned.Copy.Item = stored
	return returned, nil
}

// sendCommit writes the check-in. From here on the machine's connection does not matter. Storage
// recognises the id of a repeat, so the check-in happens once.
func (s *Service) sendCommit(ctx context.Context, c schemas.CheckIn) (schemas.CheckInResult, error) {
	send := func(ctx context.Context) (schemas.CheckInResult, error) { return s.Returner.CheckIn(ctx, c) }
	return library.FinishCommit(ctx, s.Log.With("check_in_id", c.ID, "item_id", c.ItemID), "the check-in", send)
}

// checkStatus refuses an item whose status excludes a check-in.
func checkStatus(book library.Copy, req Request) fault.List {
	status, barcode := book.Item.Status.Name, fault.Param("itemBarcode", req.ItemBarcode)
	switch {
	case status == library.StatusIntellectualItem:
		return fault.List{fault.Refusal(library.CodeItemStatus, fmt.Sprintf("%s (%s) (Barcode: %s) has the item status %s and cannot be checked in",
			book.Instance.Title, book.Material.Name, book.Item.Barcode, status), barcode)}
	case status == library.StatusClaimedReturned && req.ClaimedReturnedResolution == "":
		return fault.List{fault.Refusal(CodeClaimedReturned, "Item is claimed returned, a resolution is required to check in",
			fault.Parameter{Key: "claimedReturnedResolution"})}
	}
	return nil
}

// Close takes back the item of a loan that staff close by writing it. It is CheckIn with these
// differences, as in FOLIO: no status of the item excludes it, and an item without a request becomes
// Available everywhere. It completes c, which has item, service point, date and loan.
//
// Faults: LoanChanged if the loan is no longer the item's open one; those of CheckIn.
func (s *Service) Close(ctx context.Context, c schemas.CheckIn) error {
	facts, err := library.ReadFacts(ctx, s.Library, schemas.CheckOutSubjects{ItemID: c.ItemID, ServicePointID: c.ServicePointID})
	if err != nil {
		return fmt.Errorf("reading the item: %w", err)
	}
	if facts.Item.ID == "" {
		return library.NewNoItem(c.ItemID)
	}
	c.ID, c.ItemVersion, c.StaffMemberID = uuid.NewString(), facts.Item.Version, okapi.FromContext(ctx).UserID
	c, request, err := chooseDestination(&facts, c)
	if err != nil {
		return err
	}
	if request == nil {
		c.ItemStatus, c.InTransitDestinationServicePointID = library.StatusAvailable, ""
	}
	_, err = s.sendCommit(ctx, c)
	return err
}

// delivery is the fulfillmentPreference of a request whose item is brought to the patron.
const delivery = "Delivery"

// chooseDestination returns the commit completed with where the item goes: to the first request that it
// can fill, which it returns too, else home.
func chooseDestination(facts *library.Facts, commit schemas.CheckIn) (schemas.CheckIn, *schemas.QueuedRequest, error) {
	commit.TitleLevel = facts.TitleLevel
	first, exists := schemas.FirstFilledBy(facts.Requests, facts.Item.ID, facts.Holdings.InstanceID, facts.TitleLevel)
	if !exists {
		commit.ItemStatus = library.StatusAvailable
		if home := facts.Location; !home.IsServedBy(commit.ServicePointID) {
			commit.ItemStatus, commit.InTransitDestinationServicePointID = library.StatusInTransit, home.PrimaryServicePoint
		}
		return commit, nil, nil
	}
	commit.RequestID = first.ID
	switch {
	case first.FulfillmentPreference == delivery: // ready to be brought
		commit.ItemStatus, commit.RequestStatus = library.StatusAwaitingDelivery, schemas.RequestAwaitingDelivery
	case first.PickupServicePointID == "":
		return commit, nil, fault.Validation(fault.Refusal("REQUEST_LACKS_PICKUP_SERVICE_POINT",
			"Failed to check in item due to the highest priority request missing a pickup service point",
			fault.Parameter{Key: "pickupServicePointId"}))
	case !strings.EqualFold(first.PickupServicePointID, commit.ServicePointID):
		commit.ItemStatus, commit.RequestStatus = library.StatusInTransit, schemas.RequestInTransit
		commit.InTransitDestinationServicePointID = first.PickupServicePointID
	default:
		commit.ItemStatus, commit.RequestStatus = library.StatusAwaitingPickup, schemas.RequestAwaitingPickup
		// A repeated check-in of an item that waits does not extend its time on the shelf.
		commit.HoldShelfExpirationDate = cmp.Or(first.HoldShelfExpirationDate, endShelf(first, facts.Slip))
	}
	first.HoldShelfExpirationDate = commit.HoldShelfExpirationDate // an item that leaves the shelf has none
	return commit, &first, nil
}

// endShelf returns until when an item waits on the hold shelf, "" without an end.
func endShelf(request schemas.QueuedRequest, slip library.Slip) string {
	until, ends := slip.FindServicePoint(request.PickupServicePointID).HoldShelf.Until(time.Now().UTC())
	if !ends {
		return ""
	}
	return library.Instant{Time: until}.Text()
}
