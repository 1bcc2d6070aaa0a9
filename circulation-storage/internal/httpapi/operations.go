package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

type operationHandlers struct{ store records.Store }

const printsInterface = "print-events-storage 1.0"

// OperationRoutes are FOLIO's prints of slips, anonymization of loans, and /request-storage-batch/requests,
// by which a queue is put into another order at once.
func OperationRoutes(store records.Store) []web.Route {
	h := operationHandlers{store: store}
	return []web.Route{
		{
			Method: http.MethodPost, Path: "/print-events-storage/print-events-entry", Permission: "print-events-storage.print-events-entry.item.post", Interface: printsInterface,
			Body: web.Schema(records.PrintSchema), Endpoint: web.Empty(http.StatusCreated, writeParsed(records.ParsePrint, store.AddPrint)),
		},
		{
			Method: http.MethodPost, Path: "/print-events-storage/print-events-status", Permission: "print-events-storage.print-events-status.item.post", Interface: printsInterface,
			Body: web.Schema(records.PrintedRequestsSchema), Endpoint: web.JSON(http.StatusOK, fromParsed(records.ParsePrintedRequests, h.listPrints)),
		},
		{
			Method: http.MethodPost, Path: "/anonymize-storage-loans", Permission: "anonymize-storage-loans.post", Interface: "anonymize-storage-loans 0.1",
			Body: web.Schema(records.AnonymizedLoansSchema), Endpoint: web.JSON(http.StatusOK, fromParsed(records.ParseAnonymizedLoans, h.anonymize)),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/loans/anonymize/:id", Permission: "circulation-storage.loans.anonymize.execute", Interface: records.Loan.Interface,
			Endpoint: web.Empty(http.StatusNoContent, byPathID(store.AnonymizeLoansOf)), // also for an unknown user
		},
		{
			Method: http.MethodPost, Path: "/request-storage-batch/requests", Permission: "circulation-storage.request-batch.item.post", Interface: "request-storage-batch 2.1",
			Body: web.Schema(records.RequestBatchSchema), Endpoint: web.Empty(http.StatusCreated, writeParsed(records.ParseRequestBatch, store.PutRequests)),
		},
	}
}

type lastPrints struct {
	Prints []records.LastPrint `json:"printEventsStatusResponses"`
	Total  int                 `json:"totalRecords"`
}

func (h operationHandlers) listPrints(ctx context.Context, requestIDs []string) (lastPrints, error) {
	found, err := h.store.LastPrints(ctx, requestIDs)
	return lastPrints{Prints: found, Total: len(found)}, err
}

// anonymizedLoans is the answer to POST /anonymize-storage-loans. As in FOLIO, loans that are open or do
// not exist count as anonymized.
type anonymizedLoans struct {
	Anonymized    []string         `json:"anonymizedLoans"`
	NotAnonymized []loansLeftAlone `json:"notAnonymizedLoans"`
}

type loansLeftAlone struct {
	Reason string   `json:"reason"`
	IDs    []string `json:"loanIds"`
}

// anonymize handles POST /anonymize-storage-loans: 200, 422 without a UUID among the ids.
func (h operationHandlers) anonymize(ctx context.Context, ids []string) (anonymizedLoans, error) {
	var invalid []string
	answer := anonymizedLoans{NotAnonymized: []loansLeftAlone{}}
	for _, id := range ids {
		if schemas.IsUUID(id) {
			answer.Anonymized = append(answer.Anonymized, id)
		} else {
			invalid = append(invalid, id)
		}
	}
	if len(answer.Anonymized) == 0 {
		return answer, fault.StorageRefusal("Please provide valid loanIds", fault.Param("loanIds", fault.Shown(fmt.Sprint(ids))))
	}
	if invalid != nil {
		answer.NotAnonymized = append(answer.NotAnonymized, loansLeftAlone{Reason: "invalidLoanIds", IDs: invalid})
	}
	return answer, h.store.AnonymizeLoans(ctx, answer.Anonymized)
}
