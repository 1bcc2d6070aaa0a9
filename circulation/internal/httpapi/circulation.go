package httpapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// circulation has the handlers of all endpoints that are FOLIO's.
type circulation struct{ Options }

// checkedIn is the answer to a check-in.
type checkedIn struct {
	Loan             json.RawMessage `json:"loan,omitempty"`
	Item             loanview.Item   `json:"item"`
	StaffSlipContext staffSlip       `json:"staffSlipContext"`
	InHouseUse       bool            `json:"inHouseUse"`
}

func (h circulation) checkIn(ctx context.Context, req checkin.Request) (checkedIn, error) {
	in, err := h.CheckIn(ctx, req)
	if err != nil {
		return checkedIn{}, err
	}
	known := loanview.Known{Copy: in.Copy, Destination: in.Destination, ReturnedAt: in.At}
	var address library.Named // the type of it; the slip may lack that, because the item is back
	if in.Request != nil && in.Request.DeliveryAddressTypeID != "" {
		address, _ = h.Storage.Named(ctx, library.AddressType, in.Request.DeliveryAddressTypeID)
	}
	answer := checkedIn{Item: loanview.DescribeItem(known), StaffSlipContext: describeSlip(in, address.Name), InHouseUse: in.InHouseUse}
	if len(in.Loan) > 0 {
		// The item is back, so the answer leaves out what cannot be read about the loan.
		if answer.Loan, err = loanview.RenderOne(ctx, h.Storage, in.Loan); err != nil {
			h.Log.WarnContext(ctx, "checked in, but the loan cannot be described in full", "err", err)
			if answer.Loan, err = loanview.Render(in.Loan, known); err != nil {
				return checkedIn{}, fmt.Errorf("the item was checked in, but: %w", err)
			}
		}
	}
	return answer, nil
}

// loanPage is the answer of GET /circulation/loans.
type loanPage struct {
	Loans        []json.RawMessage `json:"loans"`
	TotalRecords int               `json:"totalRecords"`
}

// listLoans handles GET /circulation/loans. Query, offset and limit mean what
// they mean to storage.
func (h circulation) listLoans(c echo.Context) (loanPage, error) {
	stored, total, err := listPage(c, h.Storage.Loans)
	if err != nil {
		return loanPage{}, err
	}
	views, err := loanview.RenderPage(c.Request().Context(), h.Storage, stored)
	return loanPage{Loans: views, TotalRecords: total}, err
}

func (h circulation) getLoan(ctx context.Context, id string) (json.RawMessage, error) {
	stored, err := h.Storage.Loan(ctx, id)
	if err != nil {
		return nil, err
	}
	return loanview.RenderOne(ctx, h.Storage, stored)
}

func (h circulation) renew(ctx context.Context, req renewal.Request) (json.RawMessage, error) {
	stored, err := h.Renewals.Renew(ctx, req)
	return h.describeWritten(ctx, stored, err)
}

func (h circulation) renewByID(ctx context.Context, req renewal.ByIDRequest) (json.RawMessage, error) {
	stored, err := h.Renewals.RenewByID(ctx, req)
	return h.describeWritten(ctx, stored, err)
}

// describeWritten returns the loan as clients get it. The loan is written, so the answer leaves out
// what cannot be read about it.
func (h circulation) describeWritten(ctx context.Context, stored json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	view, err := loanview.RenderOne(ctx, h.Storage, stored)
	if err != nil {
		h.Log.WarnContext(ctx, "wrote the loan, but it cannot be described in full", "err", err)
		if view, err = loanview.Render(stored, loanview.Known{}); err != nil {
			return nil, fmt.Errorf("the loan was written, but: %w", err)
		}
	}
	return view, nil
}

func (h circulation) endSessions(c echo.Context) error {
	var req checkin.EndSessionsRequest
	if err := web.DecodeExact(c, &req); err != nil {
		return err
	}
	return h.EndSessions(c.Request().Context(), req)
}

// maxListed is the most loans or requests in one answer, which is made in memory.
// FOLIO's clients send any limit, so what counts is how many there are.
const maxListed = 10_000

// listFunc returns a page of stored records, and how many match in all.
type listFunc func(ctx context.Context, query string, offset, limit int) (found []json.RawMessage, total int, err error)

// listPage returns the part of a list that web.FolioPage asks for. Fault: Invalid when
// that has more than maxListed records.
func listPage(c echo.Context, list listFunc) ([]json.RawMessage, int, error) {
	q := web.QueryOf(c)
	limit := q.Integer("limit")
	found, total, err := list(c.Request().Context(), q.Text("query"), q.Integer("offset"), min(limit, maxListed+1))
	if err != nil {
		return nil, 0, err
	}
	if len(found) > maxListed {
		return nil, 0, fault.Validation(fault.Refusal(string(fault.Invalid),
			fmt.Sprintf("limit must be at most %d here, since more records match; offset leads to the next ones", maxListed),
			fault.Param("limit", fmt.Sprint(limit))))
	}
	return found, total, nil
}
