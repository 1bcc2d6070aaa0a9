package checkout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/schemas/okapi"
)

// Statuses that a check-in gives or asks for.
const (
	statusAvailable = "Available"
	statusInTransit = "In transit"
)

// resolutions maps FOLIO's claimedReturnedResolution to the action of the loan
// that it closes.
var resolutions = map[string]string{
	"Found by library":   "checkedInFoundByLibrary",
	"Returned by patron": "checkedInReturnedByPatron",
}

// CheckInRequest is the body of POST /circulation/check-in-by-barcode. Unknown
// properties are ignored.
type CheckInRequest struct {
	ItemBarcode    string `json:"itemBarcode"`
	ServicePointID string `json:"servicePointId"`
	CheckInDate    string `json:"checkInDate"`
	// ClaimedReturnedResolution says how a claimed return ended; only an item that
	// is claimed returned needs it.
	ClaimedReturnedResolution string `json:"claimedReturnedResolution"`
	// SessionID names the session at the desk, for the record of it; optional.
	SessionID string `json:"sessionId"`
}

// CheckedIn is a check-in that happened: what is stored now, and the records
// that the answer is made of.
type CheckedIn struct {
	Loan        json.RawMessage // the closed loan; empty when the item was not on loan
	Item        Item
	Holdings    Holdings
	Instance    Instance
	Location    Location
	Material    Named
	Destination Named // where the item is in transit to
	InHouseUse  bool  // the item was at home, available and not requested: somebody used it there
}

// Returner writes a check-in wholly or not at all, and answers a repeat with the
// same id like the first. Faults that say it did not happen are those of
// Committer.CheckOut except the two that are about locks.
type Returner interface {
	CheckIn(ctx context.Context, c schemas.CheckIn) (schemas.CheckInResult, error)
}

// Returns takes items back. It needs no lock: a check-in only lowers a patron's
// count. All fields are required.
type Returns struct {
	Library  ReturnLibrary
	Returner Returner
	Log      *slog.Logger
}

// CheckIn takes an item back. The first request that the item can fill gets it:
// the item waits on the hold shelf or goes In transit to the pickup service point.
// Without one it becomes Available at a service point that serves its location,
// else In transit to the location's primary one.
//
// Faults: Invalid with FOLIO's messages; ItemChanged and RequestChanged when the
// item or its queue keeps being changed by others; whatever else storage answered.
// A check-in whose outcome stayed unknown may be sent again.
func (r *Returns) CheckIn(ctx context.Context, req CheckInRequest) (CheckedIn, error) {
	date, err := req.check(okapi.FromContext(ctx).UserID)
	if err != nil {
		return CheckedIn{}, err
	}
	item, err := r.find(ctx, req.ItemBarcode)
	if err != nil {
		return CheckedIn{}, err
	}
	id := uuid.NewString()
	in, err := r.once(ctx, req, date, item, id)
	if !fault.Is(err, fault.ItemChanged) && !fault.Is(err, fault.RequestChanged) {
		return in, err
	}
	if item, err = r.Library.Item(ctx, item.ID); err != nil {
		return CheckedIn{}, fmt.Errorf("reading the changed item again: %w", err)
	}
	return r.once(ctx, req, date, item, id)
}

// check returns the check-in date, or all that is wrong with the request by
// itself.
func (r CheckInRequest) check(userID string) (Instant, error) {
	var wrong []fault.Detail
	missing := func(key, message string) {
		wrong = append(wrong, fault.Detail{Message: message, Parameters: []fault.Parameter{{Key: key}}})
	}
	if userID == "" {
		missing("userId", "No logged-in user present")
	}
	if r.ItemBarcode == "" {
		missing("itemBarcode", "Checkin request must have an item barcode")
	}
	switch {
	case r.ServicePointID == "":
		missing("servicePointId", "Checkin request must have a service point id")
	case !schemas.IsUUID(r.ServicePointID):
		wrong = append(wrong, detail("", "servicePointId must be a UUID", fault.Param("servicePointId", r.ServicePointID)))
	}
	var date Instant
	if r.CheckInDate == "" {
		missing("checkInDate", "Checkin request must have an check in date")
	} else if t, err := jsonschema.ParseTime(r.CheckInDate); err != nil {
		wrong = append(wrong, detail("", "checkInDate "+err.Error(), fault.Param("checkInDate", r.CheckInDate)))
	} else {
		date = Instant{t}
	}
	if r.SessionID != "" && !schemas.IsUUID(r.SessionID) {
		wrong = append(wrong, detail("", "sessionId must be a UUID", fault.Param("sessionId", r.SessionID)))
	}
	if _, known := resolutions[r.ClaimedReturnedResolution]; !known && r.ClaimedReturnedResolution != "" {
		wrong = append(wrong, detail("", "Unrecognized value provided for property",
			fault.Param("claimedReturnedResolution", r.ClaimedReturnedResolution)))
	}
	if len(wrong) > 0 {
		return Instant{}, fault.Validation(wrong...)
	}
	return date, nil
}

func (r *Returns) find(ctx context.Context, barcode string) (item Item, err error) {
	exists := false
	if PlausibleBarcode(barcode) {
		if item, exists, err = fault.Found(r.Library.ItemByBarcode(ctx, barcode)); err != nil {
			return Item{}, fmt.Errorf("finding the item: %w", err)
		}
	}
	if !exists {
		return Item{}, fault.Validation(detail("ITEM_BARCODE_NOT_FOUND",
			fmt.Sprintf("No item with barcode %s exists", barcode), fault.Param("itemBarcode", barcode)))
	}
	return item, nil
}

// once judges the item as it was read, and commits under id.
func (r *Returns) once(ctx context.Context, req CheckInRequest, date Instant, item Item, id string) (CheckedIn, error) {
	in, err := r.around(ctx, item)
	if err != nil {
		return CheckedIn{}, err
	}
	if err := in.refuse(req); err != nil {
		return CheckedIn{}, err
	}
	commit := schemas.CheckIn{
		ID:             id,
		ItemID:         item.ID,
		ServicePointID: req.ServicePointID,
		CheckInDate:    date.UTC().Format(time.RFC3339Nano),
		ItemVersion:    item.Version,
		StaffMemberID:  okapi.FromContext(ctx).UserID,
		SessionID:      req.SessionID,
	}
	if item.Status.Name == statusClaimed {
		commit.LoanAction = resolutions[req.ClaimedReturnedResolution]
	}
	waits, err := r.whoWaits(ctx, item, in.Holdings.InstanceID)
	if err != nil {
		return CheckedIn{}, fmt.Errorf("finding out who waits for the item: %w", err)
	}
	if err := r.send(ctx, in, waits, &commit); err != nil {
		return CheckedIn{}, err
	}
	if to := commit.InTransitDestinationServicePointID; to != "" {
		if in.Destination, _, err = fault.Found(r.Library.ServicePoint(ctx, to)); err != nil {
			return CheckedIn{}, fmt.Errorf("finding where the item goes: %w", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return CheckedIn{}, err // nothing is written for a machine that left
	}
	result, err := r.commit(ctx, commit)
	if err != nil {
		return CheckedIn{}, err
	}
	if !bytes.Equal(bytes.TrimSpace(result.Loan), []byte("null")) {
		in.Loan = result.Loan
	}
	in.InHouseUse = len(in.Loan) == 0 && commit.ItemStatus == statusAvailable && item.Status.Name == statusAvailable
	var stored Item // a fresh one, so that what storage removed is gone
	if err := json.Unmarshal(result.Item, &stored); err != nil {
		r.Log.ErrorContext(ctx, "storage answered an item that cannot be read", "err", err)
		return in, nil
	}
	in.Item = stored
	return in, nil
}

// commit writes the check-in. From here on the machine's connection does not
// matter. While the outcome is unknown it is sent again, and a last time on a context
// of its own, because this process may have slept until all others had ended. Storage
// recognises the id, so it happens once.
func (r *Returns) commit(ctx context.Context, c schemas.CheckIn) (schemas.CheckInResult, error) {
	ctx = context.WithoutCancel(ctx)
	send := func(ctx context.Context) (schemas.CheckInResult, error) { return r.Returner.CheckIn(ctx, c) }
	again := func(err error) {
		r.Log.WarnContext(ctx, "outcome of the check-in unknown; sending it again", "check_in_id", c.ID, "item_id", c.ItemID, "err", err)
	}
	rctx, cancel := context.WithTimeout(ctx, commitsTimeout)
	defer cancel()
	result, err := retryCommit(rctx, send, again)
	if err == nil || !unknown(err) {
		return result, err
	}
	again(err)
	return sendCommit(ctx, send)
}

// around fetches what the item belongs to.
func (r *Returns) around(ctx context.Context, item Item) (CheckedIn, error) {
	in := CheckedIn{Item: item}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if in.Holdings, _, err = fault.Found(r.Library.Holdings(gctx, item.HoldingsRecordID)); err != nil || in.Holdings.InstanceID == "" {
			return err
		}
		in.Instance, _, err = fault.Found(r.Library.Instance(gctx, in.Holdings.InstanceID))
		return err
	})
	if item.EffectiveLocationID != "" {
		g.Go(func() (err error) {
			in.Location, _, err = fault.Found(r.Library.Location(gctx, item.EffectiveLocationID))
			return err
		})
	}
	if item.MaterialTypeID != "" {
		g.Go(func() (err error) {
			in.Material, _, err = fault.Found(r.Library.MaterialType(gctx, item.MaterialTypeID))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return CheckedIn{}, fmt.Errorf("reading what the item belongs to: %w", err)
	}
	return in, nil
}

// refuse tells why the item cannot be checked in, if so.
func (in *CheckedIn) refuse(req CheckInRequest) error {
	switch in.Item.Status.Name {
	case statusIntellect:
		return fault.Validation(detail("", fmt.Sprintf("%s (%s) (Barcode: %s) has the item status %s and cannot be checked in",
			in.Instance.Title, in.Material.Name, in.Item.Barcode, statusIntellect), fault.Param("itemBarcode", req.ItemBarcode)))
	case statusClaimed:
		if req.ClaimedReturnedResolution == "" {
			return fault.Validation(detail("", "Item is claimed returned, a resolution is required to check in",
				fault.Param("itemBarcode", req.ItemBarcode)))
		}
	}
	return nil
}

// serves tells whether items of the location are at home at the service point. A
// location that names no primary one, or no location at all, leaves nowhere to
// send the item to, so it is at home everywhere.
func (l Location) serves(servicePointID string) bool {
	same := func(id string) bool { return strings.EqualFold(id, servicePointID) }
	return l.PrimaryServicePoint == "" || same(l.PrimaryServicePoint) || slices.ContainsFunc(l.ServicePointIDs, same)
}
