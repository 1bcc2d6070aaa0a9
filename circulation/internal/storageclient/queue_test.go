package storageclient

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestClient_Place(t *testing.T) {
	t.Parallel()
	version := 0
	tests := map[string]struct {
		placement schemas.Placement
		sent      string
		status    int
		code      fault.Code
		body      string
		want      fault.Code
	}{
		"with an item": {
			placement: schemas.Placement{Request: json.RawMessage(`{"id":"r"}`), ItemVersion: &version},
			sent:      `{"request":{"id":"r"},"itemVersion":0}`, status: 201, code: "", body: `{"request":{"id":"r"},"item":{}}`,
			want: "",
		},
		"for a title": {
			placement: schemas.Placement{Request: json.RawMessage(`{"id":"r"}`), TitleLevel: true},
			sent:      `{"request":{"id":"r"},"titleLevelRequests":true}`, status: 201, code: "", body: `{"request":{"id":"r"}}`,
			want: "",
		},
		"changed": {
			placement: schemas.Placement{Request: json.RawMessage(`{}`)}, sent: `{"request":{}}`, status: 409,
			code: fault.ItemChanged, body: "changed", want: fault.ItemChanged,
		},
		"refused": {
			placement: schemas.Placement{Request: json.RawMessage(`{}`)}, sent: `{"request":{}}`, status: 422,
			code: fault.Invalid, body: `{"errors":[{"message":"no","parameters":[]}]}`, want: fault.Invalid,
		},
		"half an answer": {
			placement: schemas.Placement{Request: json.RawMessage(`{}`)}, sent: `{"request":{}}`, status: 201, code: "",
			body: `{}`, want: fault.Internal,
		},
		"deleted since": {
			placement: schemas.Placement{ID: "i", Request: json.RawMessage(`{}`)}, sent: `{"id":"i","request":{}}`, status: 404,
			code: fault.NotFound, body: "There is no request", want: fault.NotFound,
		},
		"another storage": {
			placement: schemas.Placement{Request: json.RawMessage(`{}`)}, sent: `{"request":{}}`, status: 404, code: "",
			body: "", want: fault.Unavailable,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if got := strings.TrimSpace(string(body)); err != nil || r.Method != http.MethodPost ||
					r.URL.Path != "/request-storage/placements" || got != tt.sent {
					t.Errorf("got %s %s %s, %v, want %s", r.Method, r.URL.Path, got, err, tt.sent)
				}
				answer(w, tt.status, tt.code, tt.body)
			})
			placed, err := c.Place(inTenant(t, "diku"), tt.placement)
			if fault.CodeOf(err) != tt.want || err == nil && string(placed.Request) != `{"id":"r"}` {
				t.Errorf("got %s, %v, want %q", placed.Request, err, tt.want)
			}
		})
	}
}

// A title may have more holdings than one query names.
func TestClient_TitleItems(t *testing.T) {
	t.Parallel()
	const shelves = batch + 1
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/holdings-storage/holdings" {
			answer(w, 200, "", `{"holdingsRecords":[`+strings.TrimSuffix(strings.Repeat(`{"id":"h"},`, shelves), ",")+`]}`)
			return
		}
		if query := r.URL.Query().Get("query"); r.URL.Path != "/item-storage/items" ||
			!strings.HasPrefix(query, `holdingsRecordId==("h"`) {
			t.Errorf("asked %s for %s", r.URL.Path, query)
		}
		answer(w, 200, "", `{"items":[{"id":"a"},{"id":"b"}]}`)
	})
	if items, err := c.TitleItems(inTenant(t, "diku"), someID); err != nil || len(items) != 4 {
		t.Errorf("got %+v, %v, want two of each batch", items, err)
	}
}

func TestClient_PickupPoints(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query().Get("query"); r.URL.Path != "/service-points" || query != `pickupLocation=="true"` {
			t.Errorf("asked %s for %s", r.URL.Path, query)
		}
		answer(w, 200, "", `{"servicepoints":[{"id":"a","name":"Desk","pickupLocation":true}]}`)
	})
	if points, err := c.PickupPoints(inTenant(t, "diku")); err != nil || len(points) != 1 || points[0].Name != "Desk" {
		t.Errorf("got %+v, %v", points, err)
	}
}

func TestClient_Requests(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "limit=2&offset=1&query=status%3D%3DOpen":
			answer(w, 200, "", `{"requests":[{"id":"r"}],"totalRecords":9}`)
		case "limit=0&offset=0":
			answer(w, 200, "", `{}`)
		default:
			answer(w, 400, fault.Malformed, "bad CQL")
		}
	})
	ctx := inTenant(t, "diku")
	if page, total, err := c.Requests(ctx, "status==Open", 1, 2); err != nil || total != 9 || len(page) != 1 ||
		string(page[0]) != `{"id":"r"}` {
		t.Errorf("got %s, %d, %v", page, total, err)
	}
	if _, _, err := c.Requests(ctx, "", 0, 0); !fault.Is(err, fault.Internal) {
		t.Errorf("no list: got %v", err)
	}
	if _, _, err := c.Requests(ctx, "==", 0, 1); !fault.Is(err, fault.Malformed) ||
		!strings.Contains(err.Error(), "bad CQL") {
		t.Errorf("bad CQL: got %v", err)
	}
}

func TestClient_PickupPoint(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, "", `{"id":"`+someID+
			`","name":"Desk","pickupLocation":true,"holdShelfExpiryPeriod":{"duration":3,"intervalId":"Weeks"}}`)
	})
	ctx := inTenant(t, "diku")
	if _, err := c.ServicePoint(ctx, someID); err != nil { // kept for a second, as another kind of record
		t.Fatal(err)
	}
	point, err := c.PickupPoint(ctx, someID)
	if err != nil || point.ID != someID || !point.PickupLocation || point.HoldShelf == (library.ServicePoint{}).HoldShelf {
		t.Errorf("got %+v, %v", point, err)
	}
}
