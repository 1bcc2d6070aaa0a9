package httpapi

import (
	"context"
	"net/http"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/circulation/internal/worklist"
	"checkoutlock/schemas/convert"
	"checkoutlock/web"
)

// worklistRoutes are FOLIO's (mod-circulation, interfaces pick-slips, search-slips, inventory-reports and
// requests-reports).
func (h circulation) worklistRoutes() []web.Route {
	const servicePoint = "service point"
	return []web.Route{
		{
			Method: http.MethodGet, Path: "/circulation/pick-slips/:id", Permission: "circulation.pick-slips.get", Interface: "pick-slips 0.4",
			Endpoint: web.JSON(http.StatusOK, fromPathID(servicePoint, h.listPickSlips)),
		},
		{
			Method: http.MethodGet, Path: "/circulation/search-slips/:id", Permission: "circulation.search-slips.get", Interface: "search-slips 0.1",
			Endpoint: web.JSON(http.StatusOK, fromPathID(servicePoint, h.listSearchSlips)),
		},
		{
			Method: http.MethodGet, Path: "/circulation/requests-reports/hold-shelf-clearance/:id", Permission: "circulation.requests.hold-shelf-clearance-report.get", Interface: "requests-reports 0.8",
			Endpoint: web.JSON(http.StatusOK, h.readQueue(servicePoint, h.Worklists.HoldShelfClearance)),
		},
		{
			Method: http.MethodGet, Path: "/inventory-reports/items-in-transit", Permission: "circulation.inventory.items-in-transit-report.get", Interface: "inventory-reports 0.4",
			Endpoint: web.JSON(http.StatusOK, web.FromContext(h.listTransit)),
		},
	}
}

type pickSlips struct {
	Slips []staffSlip `json:"pickSlips"`
	Total int         `json:"totalRecords"`
}

func (h circulation) listPickSlips(ctx context.Context, servicePointID string) (pickSlips, error) {
	found, err := h.Worklists.PickSlips(ctx, servicePointID)
	return pickSlips{convert.All(found, describeListedSlip), len(found)}, err
}

type searchSlips struct {
	Slips []staffSlip `json:"searchSlips"`
	Total int         `json:"totalRecords"`
}

func (h circulation) listSearchSlips(ctx context.Context, servicePointID string) (searchSlips, error) {
	found, err := h.Worklists.SearchSlips(ctx, servicePointID)
	return searchSlips{convert.All(found, describeListedSlip), len(found)}, err
}

// transitReport is the answer of GET /inventory-reports/items-in-transit, with FOLIO's names.
type transitReport struct {
	Items []transitItem `json:"items"`
	Total int           `json:"totalRecords"`
}

type transitItem struct {
	ID              string              `json:"id"`
	Title           string              `json:"title,omitempty"`
	Barcode         string              `json:"barcode,omitempty"`
	Contributors    []loanview.Name     `json:"contributors"`
	CallNumber      string              `json:"callNumber,omitempty"`
	Enumeration     string              `json:"enumeration,omitempty"`
	DisplaySummary  string              `json:"displaySummary,omitempty"`
	Volume          string              `json:"volume,omitempty"`
	YearCaption     []string            `json:"yearCaption"`
	Status          loanview.Name       `json:"status"`
	InTransitTo     string              `json:"inTransitDestinationServicePointId,omitempty"`
	Destination     *library.Named      `json:"inTransitDestinationServicePoint,omitempty"`
	CopyNumber      string              `json:"copyNumber,omitempty"`
	CallNumberParts *library.CallNumber `json:"effectiveCallNumberComponents,omitempty"`
	Location        *loanview.Location  `json:"location,omitempty"`
	Request         *transitRequest     `json:"request,omitempty"`
	Loan            *transitLoan        `json:"loan,omitempty"`
	LastCheckIn     *transitCheckIn     `json:"lastCheckIn,omitempty"`
}

type transitRequest struct {
	Type           string   `json:"requestType"`
	Date           string   `json:"requestDate,omitempty"`
	ExpirationDate string   `json:"requestExpirationDate,omitempty"`
	Pickup         string   `json:"requestPickupServicePointName,omitempty"`
	PatronGroup    string   `json:"requestPatronGroup,omitempty"`
	Tags           []string `json:"tags,omitempty"`
}

type transitLoan struct {
	CheckedInAt *loanview.Place `json:"checkInServicePoint,omitempty"`
	CheckedIn   string          `json:"checkInDateTime,omitempty"`
}

type transitCheckIn struct {
	Date string         `json:"dateTime,omitempty"`
	At   *library.Named `json:"servicePoint,omitempty"`
}

// listTransit handles GET /inventory-reports/items-in-transit: 200.
func (h circulation) listTransit(ctx context.Context) (transitReport, error) {
	found, total, err := h.Worklists.ItemsInTransit(ctx)
	return transitReport{Items: convert.All(found, describeTransit), Total: total}, err
}

func describeTransit(t worklist.Transit) transitItem {
	item := t.Copy.Item
	view := transitItem{
		ID: item.ID, Title: t.Copy.Instance.Title, Barcode: item.Barcode, Contributors: loanview.DescribeContributors(t.Copy.Instance), CallNumber: item.CallNumber.CallNumber,
		Enumeration: item.Enumeration, DisplaySummary: item.DisplaySummary, Volume: item.Volume, YearCaption: append([]string{}, item.YearCaption...),
		Status: loanview.Name{Name: item.Status.Name}, InTransitTo: item.InTransitDestinationServicePointID, Destination: t.Destination.Named(),
		CopyNumber: t.Copy.Number(), CallNumberParts: item.CallNumber.Parts(), Location: loanview.DescribeLocation(t.Copy.Location, t.Library.Name),
	}
	if r := t.Request; r != nil {
		view.Request = &transitRequest{
			Type: r.RequestType, Date: r.RequestDate, ExpirationDate: r.RequestExpirationDate, Pickup: t.Pickup.Name,
			PatronGroup: t.Group.Desc, Tags: r.Tags.TagList,
		}
	}
	if t.Loan != nil {
		view.Loan = &transitLoan{CheckedInAt: loanview.DescribePlace(t.CheckedIn)}
		if view.Loan.CheckedInAt != nil {
			view.Loan.CheckedInAt.ID = "" // as in FOLIO
		}
		if !t.Loan.ReturnDate.IsZero() {
			view.Loan.CheckedIn = t.Loan.ReturnDate.Text()
		}
	}
	if item.LastCheckIn != nil {
		view.LastCheckIn = &transitCheckIn{Date: t.LastCheckIn, At: t.LastCheckInAt.Named()}
	}
	return view
}
