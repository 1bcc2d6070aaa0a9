package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/schemas"
)

func TestCheckoutLockRoutes_ListPages(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	w := a.do(http.MethodGet, "", "")
	if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != `{"checkoutLocks":[],"totalRecords":0}` {
		t.Errorf("without locks: %d %s", w.Code, got)
	}
	var want []string
	for range 12 {
		want = append(want, a.mustPost(t, uuid.New(), `,"ttlMs":60000`).ID)
	}
	for query, want := range map[string][]string{
		"":                   want[:10],
		"?limit=1000":        want,
		"?limit=2&offset=3":  want[3:5],
		"?offset=2147483647": nil,
		"?limit=0":           nil,
	} {
		w := a.do(http.MethodGet, query, "")
		page := decode[schemas.CheckoutLocks](t, w)
		var got []string
		for _, l := range page.CheckoutLocks {
			got = append(got, l.ID)
		}
		if w.Code != 200 || page.TotalRecords != 12 || !slices.Equal(got, want) {
			t.Errorf("%q: %d, %v, %d in all, want %v, 12 in all", query, w.Code, got, page.TotalRecords, want)
		}
	}
}

func TestCheckoutLockRoutes_ListByHolderAndOutdated(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	add := func(holder, ttlMs string) string {
		body := fmt.Sprintf(`{"userId":%q,"ttlMs":%s}`, uuid.New(), ttlMs)
		return decode[schemas.CheckoutLock](t,
			a.do(http.MethodPost, "", body, map[string]string{schemas.HolderHeader: holder})).ID
	}
	live, dead := add("desk 1'", "60000"), add("desk 1'", "0")
	other := add("desk 2", "60000")
	for query, want := range map[string][]string{
		"?holder=desk+1%27":                 {live, dead},
		"?holder=desk+1%27&outdated=true":   {dead},
		"?holder=desk+1%27&outdated=false":  {live},
		"?outdated=false":                   {live, other},
		"?outdated=true&limit=0":            nil,
		"?holder=desk+2&outdated=true":      nil,
		"?holder=%27+OR+%271%27%3D%271":     nil,
		"?holder=desk&userId=" + patronID:   nil,
		"?outdated=true&userId=" + patronID: nil,
	} {
		got := decode[schemas.CheckoutLocks](t, a.do(http.MethodGet, query, ""))
		var ids []string
		for _, l := range got.CheckoutLocks {
			ids = append(ids, l.ID)
		}
		total := len(want)
		if strings.Contains(query, "limit=0") {
			total = 1
		}
		if !slices.Equal(ids, want) || got.TotalRecords != total {
			t.Errorf("%s: %v, %d in all, want %v, %d", query, ids, got.TotalRecords, want, total)
		}
	}
}
