// Package httpapi is circulation's HTTP front: its routes, and how requests and answers
// look. It knows the domain packages, not storage's client.
package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/circulation/internal/worklist"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

// Storage has stored records, and the records that they name. A CQL query may be "" for all. Faults:
// NotFound for an id; Malformed for bad CQL, and for an empty query of what to delete.
type Storage interface {
	related.Records
	admin.Policies
	Loan(ctx context.Context, id string) (json.RawMessage, error)
	// Loans returns a page of the loans that match a CQL query, and how many match in all.
	Loans(ctx context.Context, query string, offset, limit int) (loans []json.RawMessage, total int, err error)
	// AnonymizeLoansOf takes a patron off closed loans, at most 5000, and returns their ids.
	AnonymizeLoansOf(ctx context.Context, userID string) ([]string, error)
	// DeleteLoan and DeleteLoans leave items as they are.
	DeleteLoan(ctx context.Context, id string) error
	DeleteLoans(ctx context.Context, query string) error

	StoredRules(ctx context.Context) (schemas.CirculationRules, error)
	PutRules(ctx context.Context, text string) error

	Request(ctx context.Context, id string) (json.RawMessage, error)
	// Requests returns a page of the requests that match a CQL query, and how many match in all.
	Requests(ctx context.Context, query string, offset, limit int) (requests []json.RawMessage, total int, err error)
	// DeleteRequests leaves queues and items as they are, as in FOLIO.
	DeleteRequests(ctx context.Context, query string) error
	// ItemQueue and TitleQueue return the open requests of an item, and those of an instance and its items,
	// in the order of their positions.
	ItemQueue(ctx context.Context, itemID string) ([]json.RawMessage, error)
	TitleQueue(ctx context.Context, instanceID string) ([]json.RawMessage, error)
	// ExistingRequests returns those of the ids that are of requests.
	ExistingRequests(ctx context.Context, ids []string) ([]string, error)
	// AddPrint stores a checked print.
	AddPrint(ctx context.Context, body json.RawMessage) error

	// Settings returns a page of the settings that match a CQL query, and how many match in all.
	Settings(ctx context.Context, query string, offset, limit int) (settings []json.RawMessage, total int, err error)
	Setting(ctx context.Context, id string) (json.RawMessage, error)
	// CreateSetting stores a setting in place of one of the same name, and returns it as stored.
	CreateSetting(ctx context.Context, setting json.RawMessage) (json.RawMessage, error)
	ReplaceSetting(ctx context.Context, id string, setting json.RawMessage) error
	DeleteSetting(ctx context.Context, id string) error
}

// Options configure New. All fields are required.
type Options struct {
	CheckOut func(context.Context, checkout.Request) (checkout.Lent, error)
	Keyed    *keyed.Requests // check-outs with an Idempotency-Key
	CheckIn  func(context.Context, checkin.Request) (checkin.Returned, error)
	Storage  Storage
	// RulesFor returns the tenant's rules, and the criteria with what their location belongs to. Fault:
	// Internal for rules that cannot be used.
	RulesFor    func(context.Context, policy.Criteria) (*policy.Rules, policy.Criteria, error)
	DryRun      func(context.Context, checkout.DryRunRequest) (checkout.DryRun, error)
	EndSessions func(context.Context, checkin.EndSessionsRequest) error
	Renewals    renewal.Renewals
	Requests    Requests
	LoanChanges LoanChanges
	// EndExpiredSessions ends the sessions that a desk left open.
	EndExpiredSessions func(context.Context) error
	// Anonymize takes the patrons off closed loans as the tenant's setting says, and returns their ids.
	Anonymize func(context.Context) ([]string, error)
	Worklists *worklist.Service
	Admin     admin.Desk
	Guard     *auth.Guard
	Log       *slog.Logger
}

// New returns the front of circulation's endpoints. Those of check-outs, check-ins, loans
// and rules are FOLIO's (mod-circulation, interfaces circulation and
// circulation-rules).
func New(o Options) (web.Front, error) {
	return web.Front{Name: "endpoints", Routes: routes(o)}, nil
}

func routes(o Options) []web.Route {
	const rulesPath = "/circulation/rules"
	h := circulation{o}
	folio := web.WithInterface("circulation 14.7", slices.Concat(rulePolicyRoutes(o), h.requestRoutes(), web.WithRefusals(h.requestChangeRoutes(), changed...), loanChangeRoutes(o.LoanChanges), web.WithRefusals(h.loanRecordRoutes(), changed...), h.settingRoutes(), h.printRoutes(), h.worklistRoutes(), tenantRoutes(), []web.Route{
		{
			Method: http.MethodPost, Path: "/circulation/check-out-by-barcode", Permission: "circulation.check-out-by-barcode.post", Desired: checkout.OverridePermissions(),
			Refusals: slices.Concat(changed, []fault.Code{fault.LockNotAcquired, fault.KeyReused, fault.RequestRunning, fault.OutcomeUnknown}),
			Headers:  []web.Parameter{{Name: schemas.IdempotencyKeyHeader, Meaning: "the same for each repeat of one check-out", Most: schemas.MaxIdempotencyKey}},
			Body:     checkout.Request{}, Endpoint: web.Handle(h.checkOut, web.Answer{Status: http.StatusCreated, Body: web.Schema("loan")}).With(web.Location),
		},
		{
			Method: http.MethodPost, Path: "/circulation/check-out-by-barcode-dry-run", Permission: "circulation.check-out-by-barcode-dry-run.post", Desired: checkout.OverridePermissions(),
			// It creates nothing, but 201 is FOLIO's status.
			Body: checkout.DryRunRequest{}, Endpoint: web.JSON(http.StatusCreated, web.FromExact(o.DryRun)),
		},
		{
			Method: http.MethodPost, Path: "/circulation/check-in-by-barcode", Permission: "circulation.check-in-by-barcode.post", Refusals: changed,
			Body: checkin.Request{}, Endpoint: web.JSON(http.StatusOK, web.FromExact(h.checkIn)),
		},
		{
			Method: http.MethodPost, Path: "/circulation/end-patron-action-session", Permission: "circulation.end-patron-action-session.post", Interface: "patron-action-session 0.2",
			Body: checkin.EndSessionsRequest{}, Endpoint: web.Empty(http.StatusNoContent, h.endSessions),
		},
		{
			Method: http.MethodPost, Path: "/circulation/notice-session-expiration-by-timeout", Interface: "_timer 1.0", Every: 3 * time.Minute,
			Refusals: []fault.Code{fault.Invalid}, // the setting cannot be used
			Endpoint: web.Empty(http.StatusNoContent, func(c echo.Context) error { return o.EndExpiredSessions(c.Request().Context()) }),
		},
		{
			Method: http.MethodPost, Path: "/circulation/renew-by-barcode", Permission: "circulation.renew-by-barcode.post", Refusals: loanChanged, Desired: renewal.OverridePermissions(),
			Body: renewal.Request{}, Endpoint: web.JSON(http.StatusOK, web.FromExact(h.renew)).Of("loan"),
		},
		{
			Method: http.MethodPost, Path: "/circulation/renew-by-id", Permission: "circulation.renew-by-id.post", Refusals: loanChanged, Desired: renewal.OverridePermissions(),
			Body: renewal.ByIDRequest{}, Endpoint: web.JSON(http.StatusOK, web.FromExact(h.renewByID)).Of("loan"),
		},
		{
			Method: http.MethodGet, Path: loansPath, Permission: "circulation.loans.collection.get", Refusals: tooLong,
			Query: web.FolioPage(), Endpoint: web.JSON(http.StatusOK, h.listLoans),
		},
		{Method: http.MethodGet, Path: loansPath + "/:id", Permission: "circulation.loans.item.get", Endpoint: web.JSON(http.StatusOK, fromPathID("loan", h.getLoan)).Of("loan")},
		{Method: http.MethodGet, Path: rulesPath, Permission: "circulation.rules.get", Interface: rulesInterface, Endpoint: web.JSON(http.StatusOK, web.FromContext(o.Storage.StoredRules))},
		{
			Method: http.MethodPut, Path: rulesPath, Permission: "circulation.rules.put", Interface: rulesInterface,
			Body: web.Schema("circulation-rules"), Endpoint: web.Handle(h.putRules, web.Answer{Status: http.StatusNoContent, Headers: warnings}, web.Answer{Status: http.StatusUnprocessableEntity, Body: refusedRules{}}),
		},
	}))
	timing := web.Route{ // ours: a machine may read it that may lend
		Method: http.MethodGet, Path: "/circulation/check-out-timing", Permission: "circulation.check-out-by-barcode.post",
		Query: web.Strict(), Endpoint: web.JSON(http.StatusOK, web.FromContext(adminHandlers{o.Admin}.readTiming)),
	}
	all := slices.Concat(o.Guard.Grant(folio), []web.Route{timing}, adminRoutes(o.Admin, o.Guard))
	return web.WithGuard(web.WithRefusals(all, fault.Overloaded), func(web.Route) echo.MiddlewareFunc { return ignoreContentType })
}

// The codes of a write that found other records than it judged by, and of a list that is made in memory.
var (
	changed     = []fault.Code{fault.ItemChanged, fault.RequestChanged, fault.LoanChanged}
	loanChanged = []fault.Code{fault.ItemChanged, fault.LoanChanged}
	tooLong     = []fault.Code{fault.Invalid}
)

// tenantRoutes are FOLIO's by which a gateway installs and removes the module. Storage keeps all
// records, so they do nothing.
func tenantRoutes() []web.Route {
	done := web.Empty(http.StatusNoContent, func(echo.Context) error { return nil })
	return web.WithInterface("_tenant 1.0", []web.Route{
		{Method: http.MethodPost, Path: "/_/tenant", Endpoint: done},
		{Method: http.MethodDelete, Path: "/_/tenant", Endpoint: done},
	})
}

// ignoreContentType lets any Content-Type announce a JSON body, as mod-circulation does. The
// required header of the tenant keeps forms of other sites out.
func ignoreContentType(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Request().Header.Del(echo.HeaderContentType)
		return next(c)
	}
}
