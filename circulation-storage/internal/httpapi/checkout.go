package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// Commits commits check-outs and check-ins of the tenant in ctx and counts its
// open loans.
type Commits interface {
	// CheckOut returns the id of the loan with the answer.
	CheckOut(ctx context.Context, body []byte) (uuid.UUID, schemas.CheckOutResult, error)
	CheckIn(ctx context.Context, body []byte) (schemas.CheckInResult, error)
	CountOpenLoans(ctx context.Context, o commit.OpenLoans) (int, error)
	// DurableLoan returns a loan that no crash can lose. Fault: NotFound.
	DurableLoan(ctx context.Context, id uuid.UUID) (json.RawMessage, error)
}

type checkOutHandlers struct{ commits Commits }

// CheckOutRoutes are the all-or-nothing commits of check-outs and check-ins, and
// the count that a check-out needs (all ours).
func CheckOutRoutes(commits Commits) []web.Route {
	h := checkOutHandlers{commits: commits}
	return []web.Route{
		{Method: http.MethodPost, Path: "/loan-storage/check-outs", Handler: h.checkOut, Permission: "circulation-storage.check-outs.item.post"},
		{Method: http.MethodGet, Path: "/loan-storage/check-outs/:id", Handler: h.durableLoan, Permission: "circulation-storage.check-outs.item.get"},
		{Method: http.MethodPost, Path: "/loan-storage/check-ins", Handler: h.checkIn, Permission: "circulation-storage.check-ins.item.post"},
		{Method: http.MethodGet, Path: "/loan-storage/open-loan-count", Handler: h.count, Permission: "circulation-storage.loans.open-count.get"},
	}
}

// checkOut handles POST /loan-storage/check-outs: 201 with loan and item, for a
// repeat too; 409 when lock, settings or item changed meanwhile; 422 for what
// never succeeds as sent.
func (h checkOutHandlers) checkOut(c echo.Context) error {
	body, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	id, result, err := h.commits.CheckOut(c.Request().Context(), body)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/loan-storage/loans/"+id.String())
	return c.JSON(http.StatusCreated, result)
}

// durableLoan handles GET /loan-storage/check-outs/{loanId}: 200 with the stored
// loan, 404 when there is none, 504 while a synchronous standby does not confirm
// it. Unlike GET /loan-storage/loans/{id}, it never answers with a loan that a
// crash or a failover could lose.
func (h checkOutHandlers) durableLoan(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	loan, err := h.commits.DurableLoan(c.Request().Context(), uuid.MustParse(id))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, loan)
}

// checkIn handles POST /loan-storage/check-ins: 200 with the item, and with the
// loan if the item was on loan; 409 when the item changed meanwhile.
func (h checkOutHandlers) checkIn(c echo.Context) error {
	body, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	result, err := h.commits.CheckIn(c.Request().Context(), body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, result)
}

// count handles GET /loan-storage/open-loan-count?userId=&materialTypeId=&loanTypeId=&lockId=:
// 200, or 409 LOCK_LOST when lockId is not, or no longer, the patron's lock.
func (h checkOutHandlers) count(c echo.Context) error {
	q := web.QueryOf(c)
	q.Declare("userId", "materialTypeId", "loanTypeId", "lockId")
	if err := q.Err(); err != nil {
		return err
	}
	var o commit.OpenLoans
	for _, p := range []struct {
		name     string
		required bool
		id       *uuid.UUID
	}{{"userId", true, &o.UserID}, {"materialTypeId", false, &o.MaterialTypeID}, {"loanTypeId", false, &o.LoanTypeID}, {"lockId", false, &o.LockID}} {
		var err error
		if *p.id, err = queryID(c, p.name, p.required); err != nil {
			return err
		}
	}
	n, err := h.commits.CountOpenLoans(c.Request().Context(), o)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, schemas.OpenLoanCount{Count: n})
}

// queryID reads a UUID from the query; Nil when it is absent and may be.
func queryID(c echo.Context, name string, required bool) (uuid.UUID, error) {
	value := c.QueryParam(name)
	if !c.QueryParams().Has(name) && !required {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(value)
	if err != nil || len(value) != len(id.String()) {
		return uuid.Nil, fault.New(fault.Malformed, "Parameter %s must be a UUID, but it is %.100q", name, value)
	}
	return id, nil
}
