package storageclient

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
)

func TestClient_WritesLoans(t *testing.T) {
	t.Parallel()
	const loan = `{"id":"` + someID + `"}`
	var got string
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = r.Method + " " + r.URL.Path + " " + r.URL.Query().Get("query") + " " + string(body)
		switch {
		case r.URL.Path == "/proxiesfor":
			answer(w, 200, "", `{"proxiesFor":[{"status":"Active"}]}`)
		case r.URL.Path == "/loan-storage/loans" && r.Method == http.MethodPost:
			answer(w, 201, "", loan)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	ctx := inTenant(t, "diku")
	for want, call := range map[string]func() error{
		"POST /loan-storage/loans  " + loan: func() error {
			stored, err := c.CreateLoan(ctx, json.RawMessage(loan))
			if string(stored) != loan {
				t.Errorf("got %s", stored)
			}
			return err
		},
		"POST /loan-storage/loans/" + someID + `/replacements  {"id":"x","loan":` + loan + `}`: func() error {
			return c.ReplaceLoan(ctx, someID, schemas.LoanReplacement{ID: "x", Loan: json.RawMessage(loan)})
		},
		"DELETE /loan-storage/loans/" + someID + "  ": func() error { return c.DeleteLoan(ctx, someID) },
		"DELETE /loan-storage/loans userId==u ":       func() error { return c.DeleteLoans(ctx, "userId==u") },
		`GET /proxiesfor userId=="a" and proxyUserId=="b" `: func() error {
			found, err := c.ProxyRelations(ctx, "a", "b")
			if len(found) != 1 || found[0] != (library.ProxyRelation{Status: "Active"}) {
				t.Errorf("got %+v", found)
			}
			return err
		},
	} {
		if err := call(); err != nil || got != want {
			t.Errorf("got %v after %q, want %q", err, got, want)
		}
	}
}
