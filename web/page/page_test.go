package page_test

import (
	"errors"
	"net/http"
	"testing"

	"checkoutlock/schemas/fault"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

func TestDescribeProblem_SaysWhatAnOutageMeans(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err           error
		method        string
		means, detail string
		again, call   bool
	}{
		"the storage is away": {
			err: fault.New(fault.Unavailable, "Away"), means: "outage.lending", detail: "Away", again: true, call: true,
		},
		"a form": {
			err: fault.New(fault.Unavailable, "Away"), method: http.MethodPost,
			means: "outage.lending", detail: "Away", call: true,
		},
		"the sign-in service is away": {
			err:   fault.Wrap(page.ErrSignInAway, fault.Unavailable, "Away"),
			means: "outage.signIn", detail: "Away", again: true, call: true,
		},
		"slow":                  {err: fault.New(fault.Timeout, "Slow"), detail: "Slow", again: true, call: true},
		"a bug":                 {err: errors.New("secret"), means: "error.noPage", call: true},
		"a refusal with a text": {err: page.Refuse(fault.NotFound, "error.noSuchPage", nil), means: "error.noSuchPage"},
		"a mistake of a reader": {err: fault.New(fault.Malformed, "No such kind"), detail: "No such kind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, w := visit(t, "/", http.Header{})
			if tt.method != "" {
				c.Request().Method = tt.method
			}
			got := page.DescribeProblem(c, tt.err, "back", page.Outage{Means: "outage.lending", Contact: "Ann"})
			calls := got.Call.Values["contact"] == "Ann"
			if got.Back != "back" || got.Text.Code != texts.Code(tt.means) || got.Detail != tt.detail || calls != tt.call {
				t.Errorf("got %+v", got)
			}
			if refresh := w.Header().Get("Refresh"); (got.Again.Code != "") != tt.again || (refresh == "10") != tt.again {
				t.Errorf("it is loaded again after %q s: %q", refresh, got.Again.Code)
			}
			if bare := page.DescribeProblem(c, tt.err, "back", page.Outage{}); bare.Call.Code != "" {
				t.Errorf("without a contact: got %+v", bare.Call)
			}
		})
	}
}
