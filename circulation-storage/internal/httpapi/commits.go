package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/web"
)

type commitHandlers struct {
	service *commit.Service
	store   commit.Store
}

// CommitRoutes are the all-or-nothing commits of check-outs, check-ins, renewals, changes of
// loans and new requests, and the facts that a check-out is judged by (all ours).
func CommitRoutes(service *commit.Service, store commit.Store) []web.Route {
	h := commitHandlers{service, store}
	return []web.Route{
		{
			Method: http.MethodPost, Path: "/loan-storage/check-outs", Permission: "circulation-storage.check-outs.item.post",
			Body: web.Schema("check-out"), Endpoint: web.JSON(http.StatusCreated, h.checkOut),
		},
		{
			Method: http.MethodGet, Path: "/loan-storage/check-outs/:id", Permission: "circulation-storage.check-outs.item.get",
			Endpoint: web.JSON(http.StatusOK, fromPathID(h.getDurableLoan)).Of("loan"),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/check-ins", Permission: "circulation-storage.check-ins.item.post",
			Body: web.Schema("check-in"), Endpoint: web.JSON(http.StatusOK, web.FromBody(service.CheckIn)),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/renewals", Permission: "circulation-storage.renewals.item.post",
			Body: web.Schema("renewal"), Endpoint: web.JSON(http.StatusOK, fromParsed(commit.ParseRenewal, store.Renew)),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/loans/:id/changes", Permission: "circulation-storage.loan-changes.item.post",
			Body: web.Schema("loan-change"), Endpoint: web.Empty(http.StatusNoContent, loanChange(commit.ParseLoanChange, store.ChangeLoan)),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/loans/:id/replacements", Permission: "circulation-storage.loan-replacements.item.post",
			Body: web.Schema("loan-replacement"), Endpoint: web.Empty(http.StatusNoContent, loanChange(commit.ParseLoanReplacement, store.ReplaceLoan)),
		},
		{
			Method: http.MethodPost, Path: "/request-storage/placements", Permission: "circulation-storage.request-placements.item.post",
			Body: web.Schema("placement"), Endpoint: web.JSON(http.StatusCreated, h.place),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/check-out-facts", Permission: "circulation-storage.check-out-facts.post",
			Body: web.Schema("check-out-subjects"), Endpoint: web.JSON(http.StatusOK, web.FromBody(service.ReadCheckOutFacts)),
		},
	}
}

// checkOut handles POST /loan-storage/check-outs: 201 with loan and item, for a
// repeat too; 409 when lock, settings or item changed meanwhile, or the limit is
// reached; 422 for what never succeeds as sent.
func (h commitHandlers) checkOut(c echo.Context) (schemas.CheckOutResult, error) {
	body, err := web.ReadBody(c)
	if err != nil {
		return schemas.CheckOutResult{}, err
	}
	id, result, err := h.service.CheckOut(c.Request().Context(), body)
	if err == nil {
		c.Response().Header().Set(echo.HeaderLocation, "/loan-storage/loans/"+id.String())
	}
	return result, err
}

// getDurableLoan handles GET /loan-storage/check-outs/{loanId}: 200 with the stored
// loan, 404 when there is none, 504 while a synchronous standby does not confirm
// it. Unlike GET /loan-storage/loans/{id}, it never answers with a loan that a
// crash or a failover could lose.
func (h commitHandlers) getDurableLoan(ctx context.Context, id string) (json.RawMessage, error) {
	return h.store.DurableLoan(ctx, uuid.MustParse(id))
}

// fromParsed returns the handler of a commit that takes what parse makes of the body.
func fromParsed[C, T any](parse func([]byte) (C, error), send func(context.Context, C) (T, error)) func(echo.Context) (T, error) {
	return web.FromBody(func(ctx context.Context, body json.RawMessage) (none T, err error) {
		parsed, err := parse(body)
		if err != nil {
			return none, err
		}
		return send(ctx, parsed)
	})
}

// loanChange handles the changes of a loan: 204, for a repeat too; 404 without the loan; 422 with
// mod-circulation's messages.
func loanChange[C any](parse func(uuid.UUID, []byte) (C, error), write func(context.Context, C) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := readPathID(c)
		if err != nil {
			return err
		}
		return writeParsed(func(body []byte) (C, error) { return parse(uuid.MustParse(id), body) }, write)(c)
	}
}

// writeParsed is fromParsed for what answers without a body.
func writeParsed[C any](parse func([]byte) (C, error), write func(context.Context, C) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		_, err := fromParsed(parse, func(ctx context.Context, parsed C) (struct{}, error) { return struct{}{}, write(ctx, parsed) })(c)
		return err
	}
}

// place handles POST /request-storage/placements: 201 with the request and its
// item, for a repeat too; 409 when item or queue changed meanwhile; 422 for what
// never succeeds as sent.
func (h commitHandlers) place(c echo.Context) (schemas.PlacedRequest, error) {
	body, err := web.ReadBody(c)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	p, err := commit.ParsePlacement(body)
	if err != nil {
		return schemas.PlacedRequest{}, err
	}
	placed, err := h.store.Place(c.Request().Context(), p)
	if err == nil {
		c.Response().Header().Set(echo.HeaderLocation, "/request-storage/requests/"+p.RequestID.String())
	}
	return placed, err
}
