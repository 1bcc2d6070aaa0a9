package httpapi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/claim"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

// CheckOutRequests keeps the Idempotency-Keys of the tenant in ctx; see
// claim.Store.
type CheckOutRequests interface {
	Claim(ctx context.Context, req claim.Request) (claim.Claim, error)
	Renew(ctx context.Context, claimID uuid.UUID, lease time.Duration) error
	Finish(ctx context.Context, claimID uuid.UUID, answer json.RawMessage) error
}

type checkOutRequestHandlers struct{ requests CheckOutRequests }

// CheckOutRequestRoutes are /check-out-request-storage (ours): who works on the
// check-out that an Idempotency-Key stands for, and what it was answered.
func CheckOutRequestRoutes(requests CheckOutRequests) []web.Route {
	const path, permission = "/check-out-request-storage", "circulation-storage.check-out-requests.item"
	h := checkOutRequestHandlers{requests: requests}
	return []web.Route{
		{
			Method: http.MethodPost, Path: path, Permission: permission + ".post",
			Endpoint: web.Handle(h.claim, web.Answer{Status: http.StatusCreated, Body: schemas.CheckOutClaim{}}, web.Answer{Status: http.StatusOK, Body: schemas.CheckOutClaim{}}),
		},
		{
			Method: http.MethodPut, Path: path + "/:claimId", Permission: permission + ".put",
			Endpoint: web.Empty(http.StatusNoContent, h.change),
		},
	}
}

// claim handles POST /check-out-request-storage: 201 for a claim, 200 with the
// answer of a check-out that is finished, 409 while somebody else works on it, 422
// for a key that was used with another body.
func (h checkOutRequestHandlers) claim(c echo.Context) error {
	raw, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	if _, err := jsonschema.Decode(raw); err != nil { // half a character would be replaced without a word
		return err
	}
	var body schemas.CheckOutRequest
	if err := web.Unmarshal(raw, &body); err != nil {
		return err
	}
	req, err := claimRequest(body)
	if err != nil {
		return err
	}
	req.Holder = holder(c.Request().Header.Get(schemas.HolderHeader))
	got, err := h.requests.Claim(c.Request().Context(), req)
	if err != nil {
		return err
	}
	answer := schemas.CheckOutClaim{LoanID: got.LoanID.String(), Taken: got.Taken}
	if got.Answer == nil {
		return c.JSON(http.StatusCreated, answer)
	}
	if err := json.Unmarshal(got.Answer, &answer.Answer); err != nil {
		return fmt.Errorf("reading a stored answer: %w", err)
	}
	return c.JSON(http.StatusOK, answer)
}

// claimRequest checks the body, and names everything that is wrong with it at
// once.
func claimRequest(body schemas.CheckOutRequest) (claim.Request, error) {
	var wrong fault.List
	if !schemas.IsIdempotencyKey(body.Key) {
		wrong.Add("key", "must have 1 to "+strconv.Itoa(schemas.MaxIdempotencyKey)+" printable characters", body.Key)
	}
	req := claim.Request{
		Key: body.Key, Lease: time.Duration(body.LeaseMs) * time.Millisecond, Wait: time.Duration(body.WaitMs) * time.Millisecond,
	}
	hash, err := hex.DecodeString(body.BodyHash)
	if err != nil || len(hash) != len(req.BodyHash) {
		wrong.Add("bodyHash", "must be a SHA-256 of 64 hexadecimal digits", body.BodyHash)
	}
	copy(req.BodyHash[:], hash)
	id, ok := requestID(body.ClaimID)
	if !ok || id == uuid.Nil {
		wrong.Add("claimId", "must be a UUID and not the nil one", body.ClaimID)
	}
	req.ClaimID = id
	if body.LeaseMs < schemas.MinClaimLeaseMs || body.LeaseMs > schemas.MaxClaimLeaseMs {
		wrong.Add("leaseMs", fmt.Sprintf("must be from %d to %d milliseconds", schemas.MinClaimLeaseMs, schemas.MaxClaimLeaseMs), strconv.Itoa(body.LeaseMs))
	}
	checkRange(&wrong, "waitMs", body.WaitMs, schemas.MaxClaimWaitMs)
	return req, wrong.Err()
}

// change handles PUT /check-out-request-storage/{claimId}: 204, or 409 when the
// claim is no longer the caller's.
func (h checkOutRequestHandlers) change(c echo.Context) error {
	id, ok := requestID(c.Param("claimId"))
	if !ok || id == uuid.Nil {
		return fault.New(fault.Malformed, "The claim's id must be a UUID, not %s", fault.Shown(c.Param("claimId")))
	}
	var body schemas.CheckOutClaimChange
	if err := web.Decode(c, &body); err != nil {
		return err
	}
	return h.apply(c.Request().Context(), id, body)
}

func (h checkOutRequestHandlers) apply(ctx context.Context, id uuid.UUID, change schemas.CheckOutClaimChange) error {
	var wrong fault.List
	switch {
	case (change.LeaseMs == nil) == (change.Answer == nil):
		wrong.Add("leaseMs", "or answer is required, and not both", "")
	case change.LeaseMs != nil:
		checkRange(&wrong, "leaseMs", *change.LeaseMs, schemas.MaxClaimLeaseMs)
	case change.Answer.Status < http.StatusOK || change.Answer.Status >= http.StatusInternalServerError:
		wrong.Add("answer.status", "must be from 200 to 499", strconv.Itoa(change.Answer.Status))
	case len(change.Answer.Body) == 0:
		wrong.Add("answer.body", "is required", "")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	if change.LeaseMs != nil {
		return h.requests.Renew(ctx, id, time.Duration(*change.LeaseMs)*time.Millisecond)
	}
	answer, err := json.Marshal(change.Answer)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return h.requests.Finish(ctx, id, answer)
}
