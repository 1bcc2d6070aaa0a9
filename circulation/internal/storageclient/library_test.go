package storageclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestClient_EscapesBarcodes(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`036000291452`:     `barcode=="036000291452"`,
		`two words & more`: `barcode=="two words & more"`,
		`with"quote`:       `barcode=="with\"quote"`,
		`with*star?`:       `barcode=="with\*star\?"`,
		`back\slash`:       `barcode=="back\\slash"`,
		`\"`:               `barcode=="\\\""`,
		`^anchor`:          `barcode=="\^anchor"`,
		`" or id=="*`:      `barcode=="\" or id==\"\*"`,
		`Bücher+100%`:      `barcode=="Bücher+100%"`,
	}
	for barcode, want := range tests {
		t.Run(barcode, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				if got := r.URL.Query().Get("query"); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				if got := r.URL.Query().Get("limit"); got != "1" {
					t.Errorf("limit is %q, want 1", got)
				}
				answer(w, 200, "", `{"users":[{"id":"`+someID+`","barcode":"b"}],"totalRecords":1}`)
			})
			user, err := c.UserByBarcode(inTenant(t, "diku"), barcode)
			if err != nil || user.ID != someID || user.Barcode != "b" {
				t.Errorf("got %+v, %v", user, err)
			}
		})
	}
}

func TestClient_DistinguishesNoMatchFromAnOddAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		code   fault.Code
		body   string
		want   fault.Code
	}{
		"no match":             {status: 200, code: "", body: `{"users":[],"totalRecords":0}`, want: fault.NotFound},
		"another collection":   {status: 200, code: "", body: `{"items":[]}`, want: fault.Internal},
		"no JSON":              {status: 200, code: "", body: `<html>`, want: fault.Internal},
		"nothing":              {status: 200, code: "", body: ``, want: fault.Internal},
		"a list of no records": {status: 200, code: "", body: `{"users":[1]}`, want: fault.Internal},
		"no such path":         {status: 404, code: fault.NotFound, body: ``, want: fault.Unavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, tt.status, tt.code, tt.body) })
			if _, err := c.UserByBarcode(inTenant(t, "diku"), "1"); !fault.Is(err, tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestClient_FindsNoRecordByAMissingID(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasSuffix(r.URL.Path, someID) {
			answer(w, 404, fault.NotFound, "Not found")
			return
		}
		answer(w, 404, "", "404 page of a proxy")
	})
	ctx := inTenant(t, "diku")
	if _, err := c.LoanPolicy(ctx, someID); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want %s", err, fault.NotFound)
	}
	if _, err := c.Loan(ctx, anotherID); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s: a proxy knows of no loan", err, fault.Unavailable)
	}
	before := asked.Load()
	for _, id := range []string{"", "lost-policy", "../users", "urn:uuid:" + someID, someID + "?x"} {
		if _, err := c.LoanPolicy(ctx, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: got %v, want %s", id, err, fault.NotFound)
		}
	}
	if asked.Load() != before {
		t.Error("storage was asked for what is no id")
	}
}

func TestClient_AcquiresAndReleases(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, someID):
			answer(w, 404, fault.NotFound, "")
		case r.Method == http.MethodDelete:
			answer(w, 404, "", "no such page")
		default:
			var got schemas.CheckoutLockRequest
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				t.Error(err)
			}
			if got.UserID != someID || *got.TTLMs != 3000 || got.AcquisitionID != anotherID || got.WaitMs != 500 {
				t.Errorf("asked for %+v", got)
			}
			answer(w, 201, "", `{"id":"`+someID+`"}`)
		}
	})
	ctx := inTenant(t, "diku")
	id, err := c.Acquire(ctx, checkout.LockRequest{
		UserID: someID, TTL: 3 * time.Second, AcquisitionID: anotherID, Wait: 500 * time.Millisecond,
	})
	if err != nil || id != someID {
		t.Errorf("got %q, %v", id, err)
	}
	if err := c.Release(ctx, someID); err != nil {
		t.Errorf("a lock that is gone: got %v, want it released", err)
	}
	if err := c.Release(ctx, anotherID); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a proxy's 404: got %v, want %s", err, fault.Unavailable)
	}
}

func TestClient_ReadsFiftyRecordsAtATime(t *testing.T) {
	t.Parallel()
	ids := []string{"", "no-uuid"}
	for range 120 {
		ids = append(ids, uuid.NewString())
	}
	var mu sync.Mutex
	var sizes []int
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		n := strings.Count(r.URL.Query().Get("query"), " or ") + 1
		mu.Lock()
		sizes = append(sizes, n)
		mu.Unlock()
		if got := r.URL.Query().Get("limit"); got != fmt.Sprint(n) {
			t.Errorf("limit is %s for %d ids", got, n)
		}
		answer(w, 200, "", `{"users":[{"id":"`+someID+`"}]}`)
	})
	users, err := c.Users(inTenant(t, "diku"), ids)
	if err != nil || len(users) != 3 {
		t.Errorf("got %d users, %v; want one of each of 3 queries", len(users), err)
	}
	total := 0
	for _, n := range sizes {
		total += n
		if n > 50 {
			t.Errorf("%d ids in one query", n)
		}
	}
	if total != 120 {
		t.Errorf("asked for %d ids, want 120", total)
	}
}
