package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// circulation has the handlers of check-outs, check-ins and loans.
type circulation struct{ Deps }

// checkedIn is the answer to a check-in.
type checkedIn struct {
	Loan             json.RawMessage `json:"loan,omitempty"`
	Item             loanview.Item   `json:"item"`
	StaffSlipContext struct{}        `json:"staffSlipContext"`
	InHouseUse       bool            `json:"inHouseUse"`
}

// checkIn handles POST /circulation/check-in-by-barcode.
func (h circulation) checkIn(c echo.Context) error {
	var req checkin.Request
	if err := web.DecodeExact(c, &req); err != nil {
		return err
	}
	ctx := c.Request().Context()
	in, err := h.CheckIns.CheckIn(ctx, req)
	if err != nil {
		return err
	}
	known := loanview.Known{Copy: in.Copy, Destination: in.Destination}
	answer := checkedIn{Item: loanview.DescribeItem(known), InHouseUse: in.InHouseUse}
	if len(in.Loan) > 0 {
		// The item is back whatever happens now: what cannot be found out about
		// the loan's surroundings is left out.
		if answer.Loan, err = loanview.One(ctx, h.Loans, in.Loan); err != nil {
			h.Log.WarnContext(ctx, "checked in, but the loan cannot be described in full", "err", err)
			if answer.Loan, err = loanview.Render(in.Loan, known); err != nil {
				return fmt.Errorf("the item was checked in, but: %w", err)
			}
		}
	}
	return c.JSON(http.StatusOK, answer)
}

// loanPage is the answer of GET /circulation/loans.
type loanPage struct {
	Loans        []json.RawMessage `json:"loans"`
	TotalRecords int               `json:"totalRecords"`
}

// listLoans handles GET /circulation/loans. Query, offset and limit mean what
// they mean to storage.
func (h circulation) listLoans(c echo.Context) error {
	ctx := c.Request().Context()
	stored, total, err := listPage(c, func(offset, limit int) ([]json.RawMessage, int, error) {
		return h.Loans.Loans(ctx, c.QueryParam("query"), offset, limit)
	})
	if err != nil {
		return err
	}
	views, err := loanview.Page(ctx, h.Loans, stored)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, loanPage{Loans: views, TotalRecords: total})
}

// getLoan handles GET /circulation/loans/{id}.
func (h circulation) getLoan(c echo.Context) error {
	id, err := pathID(c, "loan")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	stored, err := h.Loans.Loan(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(err, fault.NotFound, "There is no loan with the id %s", id)
	}
	if err != nil {
		return err
	}
	view, err := loanview.One(ctx, h.Loans, stored)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, view)
}
