package storageclient

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestClient_KeepsATerminalForASecond(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("query"); !strings.HasPrefix(got, "login==") {
			t.Errorf("the query is %s", got)
		}
		reads.Add(1)
		answer(w, 200, "", `{"selfCheckTerminals":[{"login":"desk-1","enabled":true,"timeZone":"Europe/Berlin",
			"patienceMs":4000.0,"addresses":["10.1.0.0/16"],"texts":{"BUSY":"Moment"}}],"totalRecords":1}`)
	})
	advance := stopClock(c)
	for _, step := range []struct {
		login string
		after time.Duration
		reads int32
	}{
		{login: "desk-1", reads: 1},
		{login: "DESK-1", reads: 1},
		{login: "desk-1", after: time.Hour, reads: 2},
	} {
		advance(step.after)
		got, err := c.Terminal(inTenant(t, "diku"), step.login)
		if err != nil || got.Login != "desk-1" || got.Texts["BUSY"] != "Moment" || len(got.Addresses) != 1 ||
			got.TimeZone != "Europe/Berlin" || got.PatienceMs != 4000 || !got.IsEnabled() {
			t.Fatalf("got %+v, %v", got, err)
		}
		if reads.Load() != step.reads {
			t.Errorf("%s after %s: %d reads, want %d", step.login, step.after, reads.Load(), step.reads)
		}
	}
	if _, err := c.Terminal(inTenant(t, "other"), "desk-1"); err != nil || reads.Load() != 3 {
		t.Errorf("another tenant: %v and %d reads, want its own", err, reads.Load())
	}
}

func TestClient_VerifiesATerminal(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		var sent schemas.TerminalLogin
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || r.URL.Path != "/self-check-terminals/verify" {
			t.Errorf("got %s, %v", r.URL.Path, err)
		}
		if sent.Password != "right-one" {
			answer(w, 422, fault.LoginRefused, "no")
			return
		}
		answer(w, 200, "", `{"login":"`+sent.Login+`","enabled":true}`)
	})
	ctx := inTenant(t, "diku")
	if got, err := c.VerifyTerminal(ctx, "desk-1", "right-one"); err != nil || got.Login != "desk-1" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := c.VerifyTerminal(ctx, "desk-1", "wrong-one"); !fault.Is(err, fault.LoginRefused) {
		t.Errorf("a wrong password: got %v, want %s", err, fault.LoginRefused)
	}
}

func TestClient_VerifiesAPIN(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		code   fault.Code
		body   string
		want   library.PINCheck
	}{
		"right": {status: 200, want: library.PINRight},
		"wrong": {status: 422, code: fault.LoginRefused, body: "no", want: library.PINWrong},
		"not set": {
			status: 422, code: fault.Invalid, body: `{"errors":[{"message":"m","code":"PIN_NOT_SET"}]}`, want: library.PINNotSet,
		},
		"refused": {status: 422, code: fault.Invalid, body: `{"errors":[{"message":"m","code":"-1"}]}`},
		"a proxy": {status: 422, body: "no"},
		"down":    {status: 503, code: fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, tt.status, tt.code, tt.body) })
			got, err := c.VerifyPIN(inTenant(t, "diku"), someID, "1234")
			if got != tt.want || (err == nil) != (tt.want != 0) {
				t.Errorf("got %d, %v, want %d", got, err, tt.want)
			}
		})
	}
}
