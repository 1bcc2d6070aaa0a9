package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/loans"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// LoanChanges does what staff do to loans.
type LoanChanges interface {
	// Change does what staff wish. Fault: NotFound.
	Change(ctx context.Context, loanID string, wish loans.Wish) error
	// Record stores a new loan and returns it as stored.
	Record(ctx context.Context, body json.RawMessage) (json.RawMessage, error)
	// Replace writes a loan over the stored one. Fault: NotFound.
	Replace(ctx context.Context, id string, body json.RawMessage) error
}

// loanChangeRoutes are FOLIO's actions on loans (mod-circulation, interfaces add-info,
// change-due-date, claim-item-returned and declare-item-lost).
func loanChangeRoutes(changes LoanChanges) []web.Route {
	return []web.Route{
		loanChangeRoute[loans.AddInfo](changes, "add-info", "add-info 0.1"),
		loanChangeRoute[loans.ChangeDueDate](changes, "change-due-date", "change-due-date 0.1"),
		loanChangeRoute[loans.ClaimReturned](changes, "claim-item-returned", "claim-item-returned 0.2"),
		loanChangeRoute[loans.DeclareLost](changes, "declare-item-lost", "declare-item-lost 0.3"),
		loanChangeRoute[loans.DeclareMissing](changes, "declare-claimed-returned-item-as-missing", "claim-item-returned 0.2"),
	}
}

// loanChangeRoute is an action with its wish as the body: 204, 404 without the loan, 422.
func loanChangeRoute[W loans.Wish](changes LoanChanges, action, ofInterface string) web.Route {
	var wish W
	return web.Route{
		Method: http.MethodPost, Path: loansPath + "/:id/" + action, Permission: "circulation.loans." + action + ".post", Interface: ofInterface, Body: wish,
		Endpoint: web.Empty(http.StatusNoContent, func(c echo.Context) error {
			id, err := readPathID(c, "loan")
			if err != nil {
				return err
			}
			var wish W
			if err := web.DecodeExact(c, &wish); err != nil {
				return err
			}
			return explainMissing(changes.Change(c.Request().Context(), id, wish), "loan", id)
		}),
	}
}

const loansPath = "/circulation/loans"

// loanRecordRoutes are those of FOLIO by which clients write loans (mod-circulation, interface
// circulation).
func (h circulation) loanRecordRoutes() []web.Route {
	const path, schema = loansPath, web.Schema("loan")
	return []web.Route{
		{Method: http.MethodPost, Path: path, Permission: "circulation.loans.item.post", Body: schema, Endpoint: web.JSON(http.StatusCreated, h.recordLoan).Of(schema).With(web.Location)},
		{Method: http.MethodPut, Path: path + "/:id", Permission: "circulation.loans.item.put", Body: schema, Endpoint: web.Empty(http.StatusNoContent, replaceByID("loan", h.LoanChanges.Replace))},
		{Method: http.MethodDelete, Path: path + "/:id", Permission: "circulation.loans.item.delete", Endpoint: web.Empty(http.StatusNoContent, deleteByID("loan", h.Storage.DeleteLoan))},
		{
			Method: http.MethodDelete, Path: path, Permission: "circulation.loans.collection.delete",
			Query:    web.Query{Parameters: []web.Parameter{{Name: "query", Meaning: "CQL that the loans to delete match"}}},
			Endpoint: web.Empty(http.StatusNoContent, deleteMatching(h.Storage.DeleteLoans)),
		},
		{
			Method: http.MethodPost, Path: "/loan-anonymization/by-user/:id", Permission: "circulation.loans.collection.anonymize.user.post", Interface: "loan-anonymization 0.1",
			Endpoint: web.JSON(http.StatusOK, fromPathID("user", h.anonymizeLoans)),
		},
		{
			Method: http.MethodPost, Path: "/circulation/scheduled-anonymize-processing", Interface: "_timer 1.0", Every: time.Hour,
			Refusals: []fault.Code{fault.Invalid}, // the setting cannot be used
			Endpoint: web.JSON(http.StatusOK, web.FromContext(h.anonymizeBySetting)),
		},
	}
}

// recordLoan handles POST /circulation/loans: 201 with the loan. The loan is stored, so the answer
// leaves out what cannot be read about it.
func (h circulation) recordLoan(c echo.Context) (json.RawMessage, error) {
	stored, err := storeBody(c, loansPath, h.LoanChanges.Record)
	return h.describeWritten(c.Request().Context(), stored, err)
}

// anonymizedLoans has no errors, because no loan has fees.
type anonymizedLoans struct {
	Anonymized []string       `json:"anonymizedLoans"`
	Errors     []fault.Detail `json:"errors"`
}

// anonymizeLoans handles POST /loan-anonymization/by-user/{userId}: 200, also for an unknown user.
func (h circulation) anonymizeLoans(ctx context.Context, userID string) (anonymizedLoans, error) {
	ids, err := h.Storage.AnonymizeLoansOf(ctx, userID)
	return anonymizedLoans{Anonymized: ids, Errors: []fault.Detail{}}, err
}

// anonymizeBySetting handles POST /circulation/scheduled-anonymize-processing: 200.
func (h circulation) anonymizeBySetting(ctx context.Context) (anonymizedLoans, error) {
	ids, err := h.Anonymize(ctx)
	return anonymizedLoans{Anonymized: append([]string{}, ids...), Errors: []fault.Detail{}}, err
}
