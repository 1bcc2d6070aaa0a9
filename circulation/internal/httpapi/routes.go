// Package httpapi is circulation's HTTP front: which path does what, and how
// requests and answers look. It knows the domain packages, not storage's client.
package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/schemas"
	"checkoutlock/web"
)

// CheckIns takes back.
type CheckIns interface {
	CheckIn(ctx context.Context, req checkin.Request) (checkin.Returned, error)
}

// Loans reads stored loans, and the records around them.
type Loans interface {
	loanview.Records
	// Loan returns a loan. Fault: NotFound.
	Loan(ctx context.Context, id string) (json.RawMessage, error)
	// Loans returns a page of the loans that match a CQL query ("" is all), and
	// how many match in all. Fault: Malformed for bad CQL.
	Loans(ctx context.Context, query string, offset, limit int) (loans []json.RawMessage, total int, err error)
}

// Rules keeps the tenant's circulation rules.
type Rules interface {
	StoredRules(ctx context.Context) (schemas.CirculationRules, error)
	PutRules(ctx context.Context, text string) error
	// LoanPolicies returns those of the ids that are of loan policies.
	LoanPolicies(ctx context.Context, ids []string) ([]string, error)
	// RequestPolicies returns those of the ids that are of request policies.
	RequestPolicies(ctx context.Context, ids []string) ([]string, error)
}

// Deps is what the handlers work with. All fields are required.
type Deps struct {
	CheckOuts keyed.CheckOuts
	Keyed     *keyed.Requests // check-outs with an Idempotency-Key
	CheckIns  CheckIns
	Loans     Loans
	Rules     Rules
	Matching  RuleMatching
	DryRuns   DryRuns
	Sessions  Sessions
	Renewals  Renewals
	Placing   Placing
	Queues    Queues
	Admin     Admin
	Guard     Guard
	Log       *slog.Logger
}

// Routes returns circulation's endpoints. Those of check-outs, check-ins, loans
// and rules are FOLIO's (mod-circulation, interfaces circulation and
// circulation-rules).
func Routes(d Deps) []web.Route {
	const (
		loanPath  = "/circulation/loans"
		rulesPath = "/circulation/rules"
	)
	circ, rules := circulation{d}, rulesHandlers{d.Rules}
	folio := slices.Concat(rulePolicyRoutes(d.Matching), dryRunRoutes(d.DryRuns), sessionRoutes(d.Sessions), renewalRoutes(d), requestRoutes(d.Placing, d.Queues), []web.Route{
		{Method: http.MethodPost, Path: "/circulation/check-out-by-barcode", Handler: circ.checkOut, Permission: "circulation.check-out-by-barcode.post"},
		{Method: http.MethodPost, Path: "/circulation/check-in-by-barcode", Handler: circ.checkIn, Permission: "circulation.check-in-by-barcode.post"},
		{Method: http.MethodGet, Path: loanPath, Handler: circ.listLoans, Permission: "circulation.loans.collection.get"},
		{Method: http.MethodGet, Path: loanPath + "/:id", Handler: circ.getLoan, Permission: "circulation.loans.item.get"},
		{Method: http.MethodGet, Path: rulesPath, Handler: rules.get, Permission: "circulation.rules.get"},
		{Method: http.MethodPut, Path: rulesPath, Handler: rules.put, Permission: "circulation.rules.put"},
	})
	return append(d.Guard.Grant(folio), adminRoutes(d.Admin, d.Guard)...)
}
