package httpapi

import (
	"encoding/json"
	"fmt"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// circulation has the handlers of check-outs, check-ins, loans and sessions.
type circulation struct{ Deps }

// checkedIn is the answer to a check-in.
type checkedIn struct {
	Loan             json.RawMessage `json:"loan,omitempty"`
	Item             loanview.Item   `json:"item"`
	StaffSlipContext struct{}        `json:"staffSlipContext"`
	InHouseUse       bool            `json:"inHouseUse"`
}

// checkIn handles POST /circulation/check-in-by-barcode.
func (h circulation) checkIn(c echo.Context) (checkedIn, error) {
	var req checkin.Request
	if err := web.DecodeExact(c, &req); err != nil {
		return checkedIn{}, err
	}
	ctx := c.Request().Context()
	in, err := h.CheckIns.CheckIn(ctx, req)
	if err != nil {
		return checkedIn{}, err
	}
	known := loanview.Known{Copy: in.Copy, Destination: in.Destination}
	answer := checkedIn{Item: loanview.DescribeItem(known), InHouseUse: in.InHouseUse}
	if len(in.Loan) > 0 {
		// The item is back, so the answer leaves out what cannot be read about the loan.
		if answer.Loan, err = loanview.RenderOne(ctx, h.Loans, in.Loan); err != nil {
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
	stored, total, err := listPage(c, h.Loans.Loans)
	if err != nil {
		return loanPage{}, err
	}
	views, err := loanview.RenderPage(c.Request().Context(), h.Loans, stored)
	return loanPage{Loans: views, TotalRecords: total}, err
}

// getLoan handles GET /circulation/loans/{id}.
func (h circulation) getLoan(c echo.Context) (json.RawMessage, error) {
	id, err := readPathID(c, "loan")
	if err != nil {
		return nil, err
	}
	ctx := c.Request().Context()
	stored, err := h.Loans.Loan(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrap(err, fault.NotFound, "There is no loan with the id %s", id)
	}
	if err != nil {
		return nil, err
	}
	return loanview.RenderOne(ctx, h.Loans, stored)
}

// renew handles POST /circulation/renew-by-barcode: 200 with the loan.
func (h circulation) renew(c echo.Context) (json.RawMessage, error) {
	var req renewal.Request
	if err := web.DecodeExact(c, &req); err != nil {
		return nil, err
	}
	ctx := c.Request().Context()
	stored, err := h.Renewals.Renew(ctx, req)
	if err != nil {
		return nil, err
	}
	// The loan is renewed, so the answer leaves out what cannot be read about it.
	view, err := loanview.RenderOne(ctx, h.Loans, stored)
	if err != nil {
		h.Log.WarnContext(ctx, "renewed, but the loan cannot be described in full", "err", err)
		if view, err = loanview.Render(stored, loanview.Known{}); err != nil {
			return nil, fmt.Errorf("the loan was renewed, but: %w", err)
		}
	}
	return view, nil
}

// dryRunAnswer is checkout.DryRun as FOLIO's clients read it.
type dryRunAnswer struct {
	LoanPolicyID         string `json:"loanPolicyId"`
	OverdueFinePolicyID  string `json:"overdueFinePolicyId"`
	LostItemPolicyID     string `json:"lostItemPolicyId"`
	PatronNoticePolicyID string `json:"patronNoticePolicyId"`
}

// dryRun handles POST /circulation/check-out-by-barcode-dry-run: 201 with the
// policies, although nothing is created: that is FOLIO's status.
func (h circulation) dryRun(c echo.Context) (dryRunAnswer, error) {
	var req checkout.DryRunRequest
	if err := web.DecodeExact(c, &req); err != nil {
		return dryRunAnswer{}, err
	}
	found, err := h.DryRuns.DryRun(c.Request().Context(), req)
	return dryRunAnswer(found), err
}

// endSessions handles POST /circulation/end-patron-action-session: 204.
func (h circulation) endSessions(c echo.Context) error {
	var req checkin.EndSessionsRequest
	if err := web.DecodeExact(c, &req); err != nil {
		return err
	}
	return h.Sessions.End(c.Request().Context(), req)
}
