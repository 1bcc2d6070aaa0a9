package storageclient

import (
	"encoding/json"
	"net/http"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
)

func TestClient_ChangesATerminal(t *testing.T) {
	t.Parallel()
	const terminal = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	var written map[string]any
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			answer(w, 200, "", `{"id":"`+terminal+`","_version":7,"login":"desk-1",`+
				`"name":"Hall","language":"de","bins":[{"bin":"2"}]}`)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&written); err != nil {
			t.Error(err)
		}
		answer(w, 204, "", "")
	})
	change := admin.TerminalChange{Version: 5, Name: "Cellar", ServicePointID: "2", LineEnd: "crlf"}
	if err := c.ChangeTerminal(inTenant(t, "diku"), terminal, change); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(written)
	const want = `{"_version":5,"bins":[{"bin":"2"}],"enabled":false,"id":"` +
		terminal + `","lineEnd":"crlf","login":"desk-1",` +
		`"name":"Cellar","servicePointId":"2"}`
	if err != nil || string(got) != want {
		t.Errorf("wrote %s, %v, want %s", got, err, want)
	}
}

func TestClient_ReportsWhatTerminalsDo(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/self-check-activity" {
			t.Errorf("got %s", r.URL.Path)
		}
		if r.Method == http.MethodPost {
			answer(w, 204, "", "")
			return
		}
		answer(w, 200, "", `{"terminals":[{"login":"desk-1","lastHour":{"refused":3}}],"notes":[]}`)
	})
	ctx := inTenant(t, "diku")
	if err := c.ReportTerminals(ctx, schemas.TerminalReport{}); err != nil {
		t.Error(err)
	}
	got, err := c.TerminalActivity(ctx)
	if err != nil || len(got.Terminals) != 1 || got.Terminals[0].LastHour.Refused != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
}
