package checkin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	homeID   = "c4c90014-c8c9-4ade-8f24-b5e313319f4b"
	branchID = "7068e104-aa14-4f30-a8bf-71f71cc15e07"
	staffID  = "0b8bb1c8-0ae9-4b0d-9e2b-8d3d2b0f3c11"
)

var (
	errGone    = fault.New(fault.Unavailable, "connection reset")
	errDown    = fault.New(fault.Internal, "storage is broken")
	errChanged = fault.New(fault.ItemChanged, "item has another version")
	// errFullDisk is an outage that is known to have changed nothing.
	errFullDisk = &fault.Error{Code: fault.Unavailable, Msg: "no space left", Unchanged: true}
)

// backend is a library whose book comes back.
type backend struct {
	*librarytest.Records
	location library.Location
	loan     json.RawMessage // what the check-in closes
	answers  []error         // of CheckIn; afterwards it succeeds
	checkIns []schemas.CheckIn
	later    *library.Item // the item when it is read again
	leaves   bool          // the machine leaves while storage commits
	left     context.CancelFunc

	shelf     string // JSON of the hold shelf's period; "" is an unknown service point
	onCheckIn func() // before a commit is answered
}

func newBackend() *backend {
	d := &backend{
		Records: librarytest.New(), loan: json.RawMessage(`{"id":"loan"}`),
		location: library.Location{
			ID: librarytest.MainID, Name: "Main", PrimaryServicePoint: homeID,
			ServicePointIDs: []string{homeID, librarytest.DeskID},
		},
	}
	d.Book.Status.Name = "Checked out"
	return d
}

// newReturn returns the request that brings the book back to the desk.
func newReturn() checkin.Request {
	return checkin.Request{
		ItemBarcode: "book", ServicePointID: librarytest.DeskID, CheckInDate: "2026-03-02T09:00:00.000+01:00",
	}
}

func (d *backend) checkIn(t *testing.T, req checkin.Request) (checkin.Returned, error) {
	t.Helper()
	s := &checkin.Service{Library: d, Returner: d, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(okapi.NewContext(t.Context(), okapi.Call{UserID: staffID}))
	defer cancel()
	d.left = cancel
	return s.CheckIn(ctx, req)
}

func (d *backend) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	seen, err := d.Records.Snapshot(ctx, subjects)
	if subjects.ServicePointID != "" {
		seen.Slip = d.slip()
	}
	if subjects.ItemID != "" && d.later != nil {
		seen.Item = *d.later
	}
	return seen, err
}

func (d *backend) Location(context.Context, string) (library.Location, error) {
	if d.location.ID == "" {
		return library.Location{}, librarytest.ErrNone
	}
	return d.location, d.Unread()
}

func (d *backend) CheckIn(ctx context.Context, c schemas.CheckIn) (schemas.CheckInResult, error) {
	d.checkIns = append(d.checkIns, c)
	if d.onCheckIn != nil {
		d.onCheckIn()
	}
	if d.leaves {
		d.left()
	}
	if err := ctx.Err(); err != nil {
		return schemas.CheckInResult{}, err
	}
	if len(d.answers) > 0 {
		err := d.answers[0]
		d.answers = d.answers[1:]
		if err != nil {
			return schemas.CheckInResult{}, err
		}
	}
	item := fmt.Sprintf(`{"id":%q,"status":{"name":%q}}`, c.ItemID, c.ItemStatus)
	return schemas.CheckInResult{Loan: d.loan, Item: json.RawMessage(item)}, nil
}

func TestCheckIn(t *testing.T) {
	t.Parallel()
	d := newBackend()
	d.Book.InTransitDestinationServicePointID = homeID // from before; storage takes it out
	in, err := d.checkIn(t, newReturn())
	if err != nil {
		t.Fatal(err)
	}
	want := schemas.CheckIn{
		ItemID: librarytest.BookItemID, ServicePointID: librarytest.DeskID, CheckInDate: "2026-03-02T08:00:00.000Z",
		ItemVersion: 4,
		ItemStatus:  "Available", StaffMemberID: staffID,
	}
	if len(d.checkIns) > 0 && schemas.IsUUID(d.checkIns[0].ID) {
		want.ID = d.checkIns[0].ID
	}
	if !reflect.DeepEqual(d.checkIns, []schemas.CheckIn{want}) {
		t.Errorf("committed %+v\nwant %+v", d.checkIns, want)
	}
	if string(in.Loan) != string(d.loan) || in.Copy.Item.Status.Name != "Available" ||
		in.Copy.Item.InTransitDestinationServicePointID != "" ||
		in.InHouseUse || in.Copy.Instance.Title != "Moby Dick" || in.Copy.Material.Name != "book" {
		t.Errorf("answered %+v", in)
	}
}

func TestCheckIn_Destinations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		at       string
		location library.Location
		status   string
		to       string
	}{
		"at a desk of its location": {
			at: librarytest.DeskID,
			location: library.Location{
				ID: librarytest.MainID, PrimaryServicePoint: homeID, ServicePointIDs: []string{librarytest.DeskID},
			},
			status: "Available",
		},
		"at its primary desk": {
			at: homeID, location: library.Location{ID: librarytest.MainID, PrimaryServicePoint: homeID}, status: "Available",
		},
		"upper case is the same": {
			at: strings.ToUpper(homeID), location: library.Location{ID: librarytest.MainID, PrimaryServicePoint: homeID},
			status: "Available",
		},
		"elsewhere": {
			at: branchID,
			location: library.Location{
				ID: librarytest.MainID, PrimaryServicePoint: homeID, ServicePointIDs: []string{librarytest.DeskID},
			},
			status: "In transit", to: homeID,
		},
		"its location is gone": {at: branchID, location: library.Location{}, status: "Available"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newBackend()
			d.location = tt.location
			req := newReturn()
			req.ServicePointID = tt.at
			in, err := d.checkIn(t, req)
			if err != nil {
				t.Fatal(err)
			}
			got := d.checkIns[0]
			if got.ItemStatus != tt.status || got.InTransitDestinationServicePointID != tt.to || in.Destination.ID != tt.to {
				t.Errorf("got %s to %q (%+v), want %s to %q", got.ItemStatus, got.InTransitDestinationServicePointID,
					in.Destination, tt.status, tt.to)
			}
		})
	}
}

func TestCheckIn_OfABookWithoutALoan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status, at string
		loan       string
		queue      []schemas.QueuedRequest
		want       bool
	}{
		"used in the house":          {status: "Available", at: librarytest.DeskID, want: true},
		"null is no loan":            {status: "Available", at: librarytest.DeskID, loan: "null", want: true},
		"found in another branch":    {status: "Available", at: branchID},
		"back from transit":          {status: "In transit", at: librarytest.DeskID},
		"on loan although Available": {status: "Available", at: librarytest.DeskID, loan: `{"id":"loan"}`},
		"another copy is requested": {status: "Available", at: librarytest.DeskID, queue: []schemas.QueuedRequest{
			{ID: "r", RequestLevel: "Item", ItemID: librarytest.OtherID, Status: schemas.RequestNotYetFilled, Position: 1},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newBackend()
			d.Book.Status.Name, d.loan, d.Queue = tt.status, json.RawMessage(tt.loan), tt.queue
			req := newReturn()
			req.ServicePointID = tt.at
			in, err := d.checkIn(t, req)
			if err != nil || in.InHouseUse != tt.want {
				t.Errorf("in-house use %t, %v; want %t", in.InHouseUse, err, tt.want)
			}
			if tt.want && len(in.Loan) != 0 {
				t.Errorf("got the loan %s, want none", in.Loan)
			}
		})
	}
}

func TestCheckIn_Refusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(d *backend, r *checkin.Request)
		want   []string // message | code | key=value
	}{
		"nothing given": {
			func(_ *backend, r *checkin.Request) { *r = checkin.Request{} },
			[]string{
				"Checkin request must have an item barcode|PROPERTY_MISSING|itemBarcode=null",
				"Checkin request must have a service point id|PROPERTY_MISSING|servicePointId=null",
				"Checkin request must have an check in date|PROPERTY_MISSING|checkInDate=null",
			},
		},
		"a blank barcode": {
			func(_ *backend, r *checkin.Request) { r.ItemBarcode = " " },
			[]string{"Checkin request must have an item barcode|PROPERTY_MISSING|itemBarcode=null"},
		},
		"a service point that is no id": {
			func(_ *backend, r *checkin.Request) { r.ServicePointID = "desk" },
			[]string{"servicePointId must be a UUID|INVALID|servicePointId=desk"},
		},
		"a date that is none": {
			func(_ *backend, r *checkin.Request) { r.CheckInDate = "yesterday" },
			[]string{
				"checkInDate must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z, or a " +
					"date|INVALID|checkInDate=yesterday",
			},
		},
		"an unknown resolution": {
			func(_ *backend, r *checkin.Request) { r.ClaimedReturnedResolution = "Lost" },
			[]string{"Unrecognized value provided for property|INVALID|claimedReturnedResolution=Lost"},
		},
		"an unknown item": {
			func(_ *backend, r *checkin.Request) { r.ItemBarcode = "nope" },
			[]string{"No item with barcode nope exists|ITEM_BARCODE_NOT_FOUND|itemBarcode=nope"},
		},
		"a barcode that cannot be": {
			func(d *backend, r *checkin.Request) { r.ItemBarcode, d.Book.Barcode = "a\x00b", "a\x00b" },
			[]string{"No item with barcode a\x00b exists|ITEM_BARCODE_NOT_FOUND|itemBarcode=a\x00b"},
		},
		"an intellectual item": {
			func(d *backend, _ *checkin.Request) { d.Book.Status.Name = "Intellectual item" },
			[]string{
				"Moby Dick (book) (Barcode: book) has the item status Intellectual item and cannot be checked " +
					"in|ITEM_STATUS|itemBarcode=book",
			},
		},
		"claimed returned without a resolution": {
			func(d *backend, _ *checkin.Request) { d.Book.Status.Name = "Claimed returned" },
			[]string{
				"Item is claimed returned, a resolution is required to check " +
					"in|ITEM_CLAIMED_RETURNED|claimedReturnedResolution=null",
			},
		},
		"a request, and it may fill none": {
			func(d *backend, req *checkin.Request) {
				req.FillNoRequest = true
				d.Queue = []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item",
					schemas.RequestNotYetFilled, 1)}
				d.Queue[0].PickupServicePointID = librarytest.DeskID
			},
			[]string{"A request waits for the item|ITEM_REQUESTED|itemBarcode=book"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, req := newBackend(), newReturn()
			tt.change(d, &req)
			_, err := d.checkIn(t, req)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Invalid {
				t.Fatalf("got %v, want it refused", err)
			}
			var got []string
			for _, detail := range f.Details {
				p := detail.Parameters[0]
				value := "null"
				if p.Value != nil {
					value = *p.Value
				}
				got = append(got, detail.Message+"|"+detail.Code+"|"+p.Key+"="+value)
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if len(d.checkIns) != 0 {
				t.Error("something was written")
			}
		})
	}
}

func TestCheckIn_NeedsALogin(t *testing.T) {
	t.Parallel()
	d := newBackend()
	s := &checkin.Service{Library: d, Returner: d, Log: slog.New(slog.DiscardHandler)}
	_, err := s.CheckIn(t.Context(), newReturn())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "No logged-in user present") ||
		len(d.checkIns) != 0 {
		t.Errorf("got %v and %d commits", err, len(d.checkIns))
	}
}

func TestCheckIn_ResolvesAClaimedReturn(t *testing.T) {
	t.Parallel()
	for resolution, want := range map[string]string{
		"Found by library": "checkedInFoundByLibrary", "Returned by patron": "checkedInReturnedByPatron",
	} {
		d, req := newBackend(), newReturn()
		d.Book.Status.Name, req.ClaimedReturnedResolution = "Claimed returned", resolution
		if _, err := d.checkIn(t, req); err != nil || d.checkIns[0].LoanAction != want {
			t.Errorf("%s: got %+v, %v, want action %s", resolution, d.checkIns, err, want)
		}
	}
	d, req := newBackend(), newReturn() // not claimed returned: the resolution resolves nothing
	req.ClaimedReturnedResolution = "Found by library"
	if _, err := d.checkIn(t, req); err != nil || d.checkIns[0].LoanAction != "" {
		t.Errorf("got %+v, %v, want an ordinary check-in", d.checkIns, err)
	}
}

func TestCheckIn_ReadsAChangedItemOnce(t *testing.T) {
	t.Parallel()
	for refusals, wanted := range map[int]fault.Code{1: "", 2: fault.ItemChanged} {
		d := newBackend()
		changed := d.Book
		changed.Version = 5
		d.later = &changed
		for range refusals {
			d.answers = append(d.answers, errChanged)
		}
		_, err := d.checkIn(t, newReturn())
		if fault.CodeOf(err) != wanted || len(d.checkIns) != 2 || d.checkIns[1].ItemVersion != 5 {
			t.Errorf("changed %d times: got %v, committed %+v; want %q after 2 commits", refusals, err, d.checkIns, wanted)
		}
	}
}

func TestCheckIn_JudgesAChangedItem(t *testing.T) {
	t.Parallel()
	d := newBackend()
	claimed := d.Book
	claimed.Version, claimed.Status.Name = 5, "Claimed returned"
	d.later, d.answers = &claimed, []error{errChanged}
	if _, err := d.checkIn(t, newReturn()); !fault.Is(err, fault.Invalid) || len(d.checkIns) != 1 {
		t.Errorf("got %v after %d commits, want it refused after 1", err, len(d.checkIns))
	}
}

func TestCheckIn_CommitsForAMachineThatLeft(t *testing.T) {
	t.Parallel()
	d := newBackend()
	d.leaves = true
	if in, err := d.checkIn(t, newReturn()); err != nil || len(in.Loan) == 0 {
		t.Errorf("got %+v, %v, want the book checked in", in, err)
	}
}
