package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/web"
)

// LoanRecords deletes loans, and leaves their items as they are.
type LoanRecords interface {
	// DeleteLoan deletes a loan. Fault: NotFound.
	DeleteLoan(ctx context.Context, id string) error
	// DeleteLoans deletes the loans that match a CQL query. Fault: Malformed for an empty or bad one.
	DeleteLoans(ctx context.Context, query string) error
}

const loansPath = "/circulation/loans"

// loanRecordRoutes are those of FOLIO by which clients write loans (mod-circulation, interface
// circulation).
func loanRecordRoutes(o Options) []web.Route {
	const path, schema = loansPath, web.Schema("loan")
	circ := circulation{o}
	return []web.Route{
		{Method: http.MethodPost, Path: path, Permission: "circulation.loans.item.post", Body: schema, Endpoint: web.JSON(http.StatusCreated, circ.recordLoan).Of(schema)},
		{Method: http.MethodPut, Path: path + "/:id", Permission: "circulation.loans.item.put", Body: schema, Endpoint: web.Empty(http.StatusNoContent, replaceByID("loan", o.LoanChanges.Replace))},
		{Method: http.MethodDelete, Path: path + "/:id", Permission: "circulation.loans.item.delete", Endpoint: web.Empty(http.StatusNoContent, deleteByID("loan", o.LoanRecords.DeleteLoan))},
		{
			Method: http.MethodDelete, Path: path, Permission: "circulation.loans.collection.delete",
			Query:    web.Query{Parameters: []web.Parameter{{Name: "query", Meaning: "CQL that the loans to delete match"}}},
			Endpoint: web.Empty(http.StatusNoContent, deleteMatching(o.LoanRecords.DeleteLoans)),
		},
	}
}

// recordLoan handles POST /circulation/loans: 201 with the loan. The loan is stored, so the answer
// leaves out what cannot be read about it.
func (h circulation) recordLoan(c echo.Context) (json.RawMessage, error) {
	stored, err := storeBody(c, loansPath, h.LoanChanges.Record)
	return h.describeWritten(c.Request().Context(), stored, err)
}
