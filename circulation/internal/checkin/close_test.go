package checkin_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// close takes the book back with a loan that staff write.
func (d *backend) close(t *testing.T, itemID, servicePointID string) error {
	t.Helper()
	s := &checkin.Service{Library: d, Returner: d, Log: slog.New(slog.DiscardHandler)}
	return s.Close(okapi.NewContext(t.Context(), okapi.Call{UserID: staffID}), schemas.CheckIn{
		ItemID: itemID, ServicePointID: servicePointID, CheckInDate: "2026-03-02T09:00:00Z",
		Loan: json.RawMessage(`{"id":"l"}`),
	})
}

func TestClose_TakesTheItemBackWithTheLoan(t *testing.T) {
	t.Parallel()
	request := librarytest.NewRequest("r", librarytest.CarlID, "Hold", "Item", schemas.RequestNotYetFilled, 1)
	request.FulfillmentPreference, request.PickupServicePointID = "Hold Shelf", homeID
	for name, tt := range map[string]struct {
		status, at string
		queue      []schemas.QueuedRequest
		want       string // the item's status
		to         string
	}{
		"at home":          {status: "Checked out", at: librarytest.DeskID, want: "Available"},
		"elsewhere":        {status: "Checked out", at: branchID, want: "Available"},
		"claimed returned": {status: "Claimed returned", at: librarytest.DeskID, want: "Available"},
		"requested elsewhere": {
			status: "Declared lost", at: librarytest.DeskID, queue: []schemas.QueuedRequest{request}, want: "In transit",
			to: homeID,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newBackend()
			d.Book.Status.Name, d.Queue, d.answers = tt.status, tt.queue, []error{errGone}
			if err := d.close(t, librarytest.BookItemID, tt.at); err != nil || len(d.checkIns) != 2 ||
				d.checkIns[0].ID != d.checkIns[1].ID {
				t.Fatalf("got %v after %+v, want the same check-in sent again", err, d.checkIns)
			}
			c := d.checkIns[1]
			if c.ItemStatus != tt.want || c.InTransitDestinationServicePointID != tt.to || c.ServicePointID != tt.at ||
				c.ItemVersion != d.Book.Version ||
				c.CheckInDate != "2026-03-02T09:00:00Z" || c.StaffMemberID != staffID || string(c.Loan) != `{"id":"l"}` ||
				(c.RequestID == "") != (tt.queue == nil) {
				t.Errorf("committed %+v", c)
			}
		})
	}
}

func TestClose_LeavesChangesToItsCaller(t *testing.T) {
	t.Parallel()
	changed := fault.New(fault.LoanChanged, "closed meanwhile")
	d := newBackend()
	d.answers = []error{changed}
	if err := d.close(t, librarytest.BookItemID, librarytest.DeskID); !errors.Is(err, changed) || len(d.checkIns) != 1 {
		t.Errorf("got %v after %d tries, want %v after one", err, len(d.checkIns), changed)
	}
	d = newBackend()
	err := d.close(t, librarytest.OtherID, librarytest.DeskID)
	if got := librarytest.Messages(err); !slices.Equal(got, []string{
		"No item with ID " + librarytest.OtherID + " could be found",
	}) || d.checkIns != nil {
		t.Errorf("an unknown item: got %v", err)
	}
}
