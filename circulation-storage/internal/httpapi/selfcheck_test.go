package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

func TestTerminalRoutes_KeepReports(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	a := recordAPI{newAPI(t, httpapi.TerminalRoutes(postgres.NewRecordStore(db, func() {}))), id}
	const path = "/self-check-activity"
	body := `{"terminals":[{"login":"desk-1","connections":1,"address":"10.0.0.1","lastMessage":"11",` +
		`"counts":[{"refused":2},{"refused":1}]}],` +
		`"notes":[{"id":"` + uuid.NewString() + `","login":"desk-1","kind":"cancelled","itemBarcode":"B-1"}]}`
	w := a.call(http.MethodPost, path, body, map[string]string{
		okapi.TenantHeader: id.String(), schemas.HolderHeader: "circulation-1",
	})
	wantStatus(t, "POST", w, http.StatusNoContent)
	got := decode[schemas.TerminalActivity](t, a.must(t, http.MethodGet, path, "", http.StatusOK))
	if len(got.Terminals) != 1 || got.Terminals[0].Instances[0] != "circulation-1" ||
		got.Terminals[0].LastHour.Refused != 3 ||
		len(got.Notes) != 1 || got.Notes[0].ItemBarcode != "B-1" || got.Notes[0].Instance != "circulation-1" {
		t.Errorf("got %+v", got)
	}
	for name, wrong := range map[string]string{
		"nothing":          `{"terminals":[]}`,
		"null":             `null`,
		"no login":         `{"terminals":[{}]}`,
		"a wrong age":      `{"terminals":[{"login":"desk-1","lastMs":-1}]}`,
		"no message":       `{"terminals":[{"login":"desk-1","lastMessage":"x"}]}`,
		"an unknown kind":  `{"notes":[{"id":"` + uuid.NewString() + `","login":"desk-1","kind":"lost"}]}`,
		"too many at once": `{"notes":[` + strings.TrimSuffix(strings.Repeat(`{},`, 101), ",") + `]}`,
	} {
		w := a.must(t, http.MethodPost, path, wrong, http.StatusUnprocessableEntity)
		if w.Body.Len() == 0 {
			t.Errorf("%s: the refusal says nothing", name)
		}
	}
}
