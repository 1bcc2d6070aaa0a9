package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// CommitRoutes are the all-or-nothing commits of check-outs, check-ins, renewals, changes of
// loans and new requests, and the facts that a check-out is judged by (all ours).
//
// A commit answers a repeat as it answered before. 409 means that the lock, the settings, an item, a
// loan or a queue changed meanwhile, or that the limit is reached; 422 is for what never succeeds as
// sent. The changes of loans answer with mod-circulation's messages.
//
// GET of a check-out answers with a loan that no crash and no failover can lose, unlike GET
// /loan-storage/loans/{id}; a settlement with the loan, or with the assurance that there never will be
// one. Both are 504 while a synchronous standby does not confirm that. A settlement waits for a commit
// that is under way, for 5 s at most, and then is 409 IN_USE. Such a commit may itself wait for the
// standby. Both answers leave the outcome open.
func CommitRoutes(store commit.Store, locks *lock.Service) []web.Route {
	return []web.Route{
		{
			Method: http.MethodPost, Path: "/loan-storage/check-outs", Permission: "circulation-storage.check-outs.item.post",
			Body: web.Schema("check-out"), Endpoint: web.JSON(http.StatusCreated, located(commit.ParseCheckOut, checkOut(store, locks),
				func(c commit.CheckOut) string { return "/loan-storage/loans/" + c.LoanID.String() })).With(web.Location),
			Refusals: []fault.Code{
				fault.GivenUp, fault.KeyLeaseLost, fault.LockHeld, fault.LockQueueFull, fault.LockLost, fault.SettingsChanged,
				fault.ItemChanged, fault.RequestChanged, fault.LimitReached,
			},
		},
		{
			Method: http.MethodGet, Path: "/loan-storage/check-outs/:id", Permission: "circulation-storage.check-outs.item.get",
			Endpoint: web.JSON(http.StatusOK, fromPathID(withUUID(store.DurableLoan))).Of("loan"),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/check-outs/:id/settlement", Permission: "circulation-storage.check-out-settlements.item.post",
			Endpoint: web.JSON(http.StatusOK, fromPathID(withUUID(store.SettleCheckOut))),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/check-ins", Permission: "circulation-storage.check-ins.item.post", Refusals: othersChanged,
			Body: web.Schema("check-in"), Endpoint: web.JSON(http.StatusOK, fromParsed(commit.ParseCheckIn, store.CheckIn)),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/renewals", Permission: "circulation-storage.renewals.item.post", Refusals: []fault.Code{fault.ItemChanged, fault.LoanChanged},
			Body: web.Schema("renewal"), Endpoint: web.JSON(http.StatusOK, fromParsed(commit.ParseRenewal, store.Renew)),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/loans/:id/changes", Permission: "circulation-storage.loan-changes.item.post",
			Body: web.Schema("loan-change"), Endpoint: web.Empty(http.StatusNoContent, loanChange(commit.ParseLoanChange, store.ChangeLoan)),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/loans/:id/replacements", Permission: "circulation-storage.loan-replacements.item.post", Refusals: []fault.Code{fault.LoanChanged},
			Body: web.Schema("loan-replacement"), Endpoint: web.Empty(http.StatusNoContent, loanChange(commit.ParseLoanReplacement, store.ReplaceLoan)),
		},
		{
			Method: http.MethodPost, Path: "/request-storage/placements", Permission: "circulation-storage.request-placements.item.post", Refusals: append([]fault.Code{fault.NotFound}, othersChanged...),
			Body: web.Schema("placement"), Endpoint: web.JSON(http.StatusCreated, located(commit.ParsePlacement, store.Place,
				func(p commit.Placement) string { return "/request-storage/requests/" + p.RequestID.String() })).With(web.Location),
		},
		{
			Method: http.MethodPost, Path: "/loan-storage/check-out-facts", Permission: "circulation-storage.check-out-facts.post",
			Body: web.Schema("check-out-subjects"), Endpoint: web.JSON(http.StatusOK, fromParsed(commit.ParseCheckOutSubjects, store.ReadCheckOutFacts)),
		},
	}
}

// othersChanged are the codes of a commit that found other records than it judged by.
var othersChanged = []fault.Code{fault.ItemChanged, fault.LoanChanged, fault.RequestChanged}

// checkOut handles POST /loan-storage/check-outs. A commit that takes the lock itself has its turn in
// the patron's line, and is 503 LOCK_HELD, as an acquire is, if that does not come in time.
func checkOut(store commit.Store, locks *lock.Service) func(context.Context, commit.CheckOut) (schemas.CheckOutResult, error) {
	return func(ctx context.Context, c commit.CheckOut) (result schemas.CheckOutResult, err error) {
		if c.TakeLock == nil {
			return store.CheckOut(ctx, c)
		}
		turn := lock.Request{UserID: c.UserID, AcquisitionID: c.TakeLock.AcquisitionID, Wait: c.TakeLock.Wait}
		waited, err := locks.RunTurn(ctx, turn, func(ctx context.Context) (time.Duration, error) {
			result, err = store.CheckOut(ctx, c)
			return time.Duration(result.LockWaitMs * float64(time.Millisecond)), err
		})
		result.LockWaitMs = schemas.Milliseconds(waited)
		return result, err
	}
}

// withUUID takes the id as fromPathID has checked it.
func withUUID[T any](f func(context.Context, uuid.UUID) (T, error)) func(context.Context, string) (T, error) {
	return func(ctx context.Context, id string) (T, error) { return f(ctx, uuid.MustParse(id)) }
}

// fromParsed returns the handler of a commit that takes what parse makes of the body.
func fromParsed[C, T any](parse func([]byte) (C, error), send func(context.Context, C) (T, error)) func(echo.Context) (T, error) {
	return func(c echo.Context) (none T, err error) {
		body, err := web.ReadBody(c)
		if err != nil {
			return none, err
		}
		parsed, err := parse(body)
		if err != nil {
			return none, err
		}
		return send(c.Request().Context(), parsed)
	}
}

// located is fromParsed with the header Location of what was written.
func located[C, T any](
	parse func([]byte) (C, error), send func(context.Context, C) (T, error), location func(C) string,
) func(echo.Context) (T, error) {
	return func(c echo.Context) (T, error) {
		var sent C
		result, err := fromParsed(func(body []byte) (_ C, err error) {
			sent, err = parse(body)
			return sent, err
		}, send)(c)
		if err == nil {
			c.Response().Header().Set(echo.HeaderLocation, location(sent))
		}
		return result, err
	}
}

// loanChange is fromParsed for the loan of the path, and nothing to answer.
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
