package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// LoanRecords deletes loans, and leaves their items as they are.
type LoanRecords interface {
	// DeleteLoan deletes a loan. Fault: NotFound.
	DeleteLoan(ctx context.Context, id string) error
	// DeleteLoans deletes the loans that match a CQL query. Fault: Malformed for an empty or bad one.
	DeleteLoans(ctx context.Context, query string) error
}

// loanRecordRoutes are those of FOLIO by which clients write loans (mod-circulation, interface
// circulation).
func loanRecordRoutes(d Deps) []web.Route {
	const path, schema = "/circulation/loans", web.Schema("loan")
	circ := circulation{d}
	return []web.Route{
		{Method: http.MethodPost, Path: path, Permission: "circulation.loans.item.post", Body: schema, Endpoint: web.JSON(http.StatusCreated, circ.recordLoan).Of(schema)},
		{Method: http.MethodPut, Path: path + "/:id", Permission: "circulation.loans.item.put", Body: schema, Endpoint: web.Empty(http.StatusNoContent, circ.replaceLoan)},
		{Method: http.MethodDelete, Path: path + "/:id", Permission: "circulation.loans.item.delete", Endpoint: web.Empty(http.StatusNoContent, circ.deleteLoan)},
		{
			Method: http.MethodDelete, Path: path, Permission: "circulation.loans.collection.delete",
			Query:    web.Query{Parameters: []web.Parameter{{Name: "query", Meaning: "CQL that the loans to delete match"}}},
			Endpoint: web.Empty(http.StatusNoContent, deleteMatching(d.LoanRecords.DeleteLoans)),
		},
	}
}

// recordLoan handles POST /circulation/loans: 201 with the loan. The loan is stored, so the answer
// leaves out what cannot be read about it.
func (h circulation) recordLoan(c echo.Context) (json.RawMessage, error) {
	body, err := web.ReadUnique(c)
	if err != nil {
		return nil, err
	}
	ctx := c.Request().Context()
	stored, err := h.LoanChanges.Record(ctx, body)
	if err != nil {
		return nil, err
	}
	id, err := readID(stored)
	if err != nil {
		return nil, fmt.Errorf("the loan was stored, but storage's answer cannot be read: %w", err)
	}
	c.Response().Header().Set(echo.HeaderLocation, "/circulation/loans/"+id)
	return h.describeWritten(ctx, stored, nil)
}

func (h circulation) replaceLoan(c echo.Context) error {
	id, err := readPathID(c, "loan")
	if err != nil {
		return err
	}
	body, err := web.ReadUnique(c)
	if err != nil {
		return err
	}
	return explainMissing(h.LoanChanges.Replace(c.Request().Context(), id, body), "loan", id)
}

func (h circulation) deleteLoan(c echo.Context) error {
	id, err := readPathID(c, "loan")
	if err != nil {
		return err
	}
	return explainMissing(h.LoanRecords.DeleteLoan(c.Request().Context(), id), "loan", id)
}

// deleteMatching is the handler of a function that deletes what a query matches. It refuses two
// queries, because only one of them would choose what to delete.
func deleteMatching(f func(ctx context.Context, query string) error) func(echo.Context) error {
	return func(c echo.Context) error {
		q := web.QueryOf(c)
		if n := q.Count("query"); n > 1 {
			return fault.New(fault.Malformed, "Parameter query is there %d times; one is expected", n)
		}
		return f(c.Request().Context(), q.Text("query"))
	}
}
