package httpapi

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/keylease"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

var (
	keyLeaseRequest = jsonschema.For[schemas.KeyLeaseRequest]("key-lease")
	keyLeaseChange  = jsonschema.For[schemas.KeyLeaseChange]("key-lease-change")
)

type keyLeaseHandlers struct{ store keylease.Store }

// KeyLeaseRoutes are /check-out-request-storage (ours): which caller works on the
// check-out of an Idempotency-Key, and its answer.
func KeyLeaseRoutes(store keylease.Store) []web.Route {
	const path, permission = "/check-out-request-storage", "circulation-storage.check-out-requests.item"
	h := keyLeaseHandlers{store: store}
	return []web.Route{
		{
			Method: http.MethodPost, Path: path, Permission: permission + ".post", Body: web.Schema(keyLeaseRequest.Name),
			Headers: ofHolder, Refusals: []fault.Code{fault.RequestRunning, fault.KeyReused},
			Endpoint: web.Handle(h.lease, web.Answer{Status: http.StatusCreated, Body: schemas.KeyLease{}}, web.Answer{Status: http.StatusOK, Body: schemas.KeyLease{}}),
		},
		{
			Method: http.MethodPut, Path: path + "/:claimId", Permission: permission + ".put", Body: web.Schema(keyLeaseChange.Name),
			Refusals: []fault.Code{fault.KeyLeaseLost},
			Endpoint: web.Empty(http.StatusNoContent, h.change),
		},
	}
}

// lease handles POST /check-out-request-storage: 201 for a lease, 200 with the
// answer of a check-out that is finished, 409 while another caller works on it, 422
// for a key that was used with another body.
func (h keyLeaseHandlers) lease(c echo.Context) error {
	body, err := web.DecodeStorable(c, keyLeaseRequest)
	if err != nil {
		return err
	}
	req := keylease.Request{
		Key: body.Key, LeaseID: uuid.MustParse(body.LeaseID), Holder: readHolder(c),
		Duration: time.Duration(body.LeaseMs) * time.Millisecond, Wait: time.Duration(body.WaitMs) * time.Millisecond,
	}
	if _, err := hex.Decode(req.BodyHash[:], []byte(body.BodyHash)); err != nil {
		return fmt.Errorf("reading a checked bodyHash: %w", err)
	}
	got, err := keylease.WaitFor(c.Request().Context(), h.store, req)
	if err != nil {
		return err
	}
	answer := schemas.KeyLease{LoanID: got.LoanID.String(), Taken: got.Taken}
	if got.Answer == nil {
		return c.JSON(http.StatusCreated, answer)
	}
	if err := json.Unmarshal(got.Answer, &answer.Answer); err != nil {
		return fmt.Errorf("reading a stored answer: %w", err)
	}
	return c.JSON(http.StatusOK, answer)
}

// change handles PUT /check-out-request-storage/{claimId}: 204, or 409 when the
// lease is no longer the caller's.
func (h keyLeaseHandlers) change(c echo.Context) error {
	id, err := uuid.Parse(c.Param("claimId"))
	if err != nil || id == uuid.Nil || !schemas.IsUUID(c.Param("claimId")) {
		return fault.New(fault.Malformed, "The claim's id must be a UUID, not %s", fault.Shown(c.Param("claimId")))
	}
	change, err := web.DecodeChecked(c, keyLeaseChange)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	switch {
	case (change.LeaseMs == nil) == (change.Answer == nil):
		var wrong fault.List
		wrong.Add("leaseMs", "or answer is required, and not both", "")
		return wrong.Err()
	case change.LeaseMs != nil:
		return h.store.Renew(ctx, id, time.Duration(*change.LeaseMs)*time.Millisecond)
	}
	answer, err := json.Marshal(change.Answer)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return h.store.Finish(ctx, id, answer)
}
