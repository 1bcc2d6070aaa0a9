package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

func TestCommitRoutes_PlaceARequest(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	a := commitAPI{newAPI(t, commitRoutes(t, db)), t, db, id}
	title, wish := uuid.New(), uuid.New()
	a.add(`INSERT INTO S.instance (id, jsonb) VALUES ($1::uuid, jsonb_build_object('id', $1::uuid))`, title)
	a.add(`INSERT INTO S.circulation_settings (id, jsonb) VALUES ($1, '{"name":"generalTlr",`+
		`"value":{"titleLevelRequestsFeatureEnabled":true}}')`, uuid.New())
	body := func(instance uuid.UUID, more string) string {
		return fmt.Sprintf(`{"request":{"id":%q,"instanceId":%q,"requesterId":%q,"requestType":"Hold","requestLevel":"Title",
			"requestDate":"2026-01-01",
			"fulfillmentPreference":"Hold Shelf","status":"Open - Not yet filled"},
			"titleLevelRequests":true%s}`, wish, instance, title, more)
	}
	const path = "/request-storage/placements"
	for _, tt := range []struct {
		body   string
		status int
		says   string
	}{
		{body: "{", status: http.StatusBadRequest, says: "not valid JSON"},
		{body: "{}", status: http.StatusUnprocessableEntity, says: "request is required"},
		{
			body: body(title, `,"itemVersion":1`), status: http.StatusUnprocessableEntity,
			says: "itemVersion goes with request.itemId",
		},
		{body: body(uuid.New(), ""), status: http.StatusUnprocessableEntity, says: "there is no instance with this id"},
		{
			body:   strings.Replace(body(title, ""), `"status"`, `"cancellationReasonId":"`+wish.String()+`","status"`, 1),
			status: http.StatusUnprocessableEntity, says: "because it does not exist in cancellation_reason.id",
		},
		{body: body(title, ""), status: http.StatusCreated, says: `"position":1`},
		{body: body(title, ""), status: http.StatusCreated, says: `"position":1`},
		{
			body:   strings.Replace(body(title, ""), `"requesterId":"`+title.String(), `"requesterId":"`+wish.String(), 1),
			status: http.StatusUnprocessableEntity, says: "that of another request",
		},
	} {
		w := a.do(http.MethodPost, path, tt.body)
		answer := strings.ReplaceAll(w.Body.String(), `": `, `":`)
		if w.Code != tt.status || !strings.Contains(answer, tt.says) {
			t.Errorf("%s: got %d %s, want %d saying %q", tt.body, w.Code, answer, tt.status, tt.says)
		}
		if location := w.Header().Get("Location"); w.Code == http.StatusCreated &&
			location != "/request-storage/requests/"+wish.String() {
			t.Errorf("Location is %q", location)
		}
	}
	w := a.call(http.MethodPost, path, body(title, ""), map[string]string{okapi.TenantHeader: "unknown"})
	if w.Code != http.StatusNotFound || w.Header().Get(fault.Header) != string(fault.UnknownTenant) {
		t.Errorf("unknown tenant: got %d %s", w.Code, w.Body)
	}
}
