package checkout_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas/fault"
)

const (
	bookRule = `{"line":3,"text":"m ` + librarytest.BookTypeID + `: l ` + librarytest.ThreeID +
		` r r1 n n1 o o1 i i1","fallback":false,"names":["materialType"],"terms":[{"id":"` + librarytest.BookTypeID +
		`","kind":"materialType","name":"book"},{"id":"` + librarytest.ThreeID + `","kind":"loanPolicy","name":"Three"}]}`
	fallbackRule = `{"line":2,"text":"fallback-policy: l ` + librarytest.OtherID +
		` r r1 n n1 o o1 i i1","fallback":true,"names":[],"terms":[{"id":"` + librarytest.OtherID +
		`","kind":"loanPolicy","name":"Three"}]}`
	threePolicy = `{"id":"` + librarytest.ThreeID + `","name":"Three"}`
	ann         = `{"id":"` + librarytest.AnnID + `","name":"Reader, Ann","group":"adults"}`
	book        = `{"id":"` + librarytest.BookItemID +
		`","title":"Moby Dick","status":"Available","materialType":"book","location":"Main"}`
	limitMessage = "Patron has reached maximum limit of 3 items for material type"
)

// explained is an Explanation as JSON, with the messages of its errors alone.
type explained struct {
	WouldLend  bool            `json:"wouldLend"`
	Errors     []fault.Detail  `json:"errors"`
	Rule       json.RawMessage `json:"rule"`
	LoanPolicy json.RawMessage `json:"loanPolicy"`
	Limit      json.RawMessage `json:"limit"`
	DueDate    string          `json:"dueDate"`
	Patron     json.RawMessage `json:"patron"`
	Item       json.RawMessage `json:"item"`
}

func TestExplain_NamesWhatDecides(t *testing.T) {
	t.Parallel()
	standing := func(open, reached string) string {
		return `{"max":3,"open":` + open + `,"reached":` + reached + `,"message":"` + limitMessage + `"}`
	}
	tests := map[string]struct {
		prepare                                func(*backend, *checkout.DryRunRequest)
		errs                                   []string
		rule, policy, limit, due, patron, item string
	}{
		"it would lend": {
			prepare: func(w *backend, _ *checkout.DryRunRequest) { w.open = []int{2} },
			errs:    nil, rule: bookRule, policy: threePolicy, limit: standing("2", "false"), due: "2026-03-15T10:00:00.000Z",
			patron: ann, item: book,
		},
		"limit reached": {
			prepare: func(w *backend, _ *checkout.DryRunRequest) { w.open = []int{4} },
			errs:    []string{limitMessage},
			rule:    bookRule, policy: threePolicy, limit: standing("4", "true"), due: "", patron: ann, item: book,
		},
		"blocked, and the limit reached": {
			prepare: func(w *backend, _ *checkout.DryRunRequest) {
				w.open, w.Manual = []int{3}, []library.ManualBlock{{Borrowing: true, Desc: "fees"}}
			},
			errs: []string{"Patron blocked from borrowing", limitMessage},
			rule: bookRule, policy: threePolicy, limit: standing("3", "true"), due: "", patron: ann, item: book,
		},
		"the fallback, without a limit": {
			prepare: func(w *backend, _ *checkout.DryRunRequest) { w.Book.MaterialTypeID = librarytest.OtherID },
			errs:    nil, rule: fallbackRule, policy: threePolicy, limit: "", due: "2026-03-15T10:00:00.000Z", patron: ann,
			item: book,
		},
		"no such patron": {
			prepare: func(_ *backend, r *checkout.DryRunRequest) { r.UserBarcode = "x" },
			errs:    []string{"Could not find user with matching barcode"},
			rule:    "", policy: "", limit: "", due: "", patron: "", item: book,
		},
		"no such item": {
			prepare: func(_ *backend, r *checkout.DryRunRequest) { r.ItemBarcode = "x" },
			errs:    []string{"No item with barcode x could be found"},
			rule:    "", policy: "", limit: "", due: "", patron: ann, item: "",
		},
		"neither": {
			prepare: func(_ *backend, r *checkout.DryRunRequest) { *r = checkout.DryRunRequest{} },
			errs:    []string{noUserBarcode, noItemBarcode},
			rule:    "", policy: "", limit: "", due: "", patron: "", item: "",
		},
		"a policy that gives no due date": {
			prepare: func(w *backend, _ *checkout.DryRunRequest) { w.Policy = strings.Replace(w.Policy, "Weeks", "Years", 1) },
			errs:    []string{`the interval "Years" in the loan policy is not recognised`},
			rule:    bookRule, policy: threePolicy, limit: standing("0", "false"), due: "", patron: ann, item: book,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, req := newBackend(), checkout.DryRunRequest{ItemBarcode: "book", UserBarcode: "ann"}
			tt.prepare(w, &req)
			service := w.service()
			service.Locker, service.Committer, service.Settings, service.Observer = nil, nil, nil, nil // would panic
			e, err := service.Explain(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var got explained
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if m := librarytest.Messages(fault.Validation(got.Errors...)); !slices.Equal(m, tt.errs) || got.Errors == nil ||
				got.WouldLend != (len(tt.errs) == 0) {
				t.Errorf("got %s, want the errors %q", raw, tt.errs)
			}
			for part, pair := range map[string][2]string{
				"rule": {string(got.Rule), tt.rule}, "policy": {string(got.LoanPolicy), tt.policy},
				"limit":    {string(got.Limit), tt.limit},
				"due date": {got.DueDate, tt.due}, "patron": {string(got.Patron), tt.patron}, "item": {string(got.Item), tt.item},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: got %s, want %s", part, pair[0], pair[1])
				}
			}
		})
	}
}

func TestExplain_NamesTheRecordsInTheRule(t *testing.T) {
	t.Parallel()
	const policies = ": l " + librarytest.ThreeID + " r r1 n n1 o o1 i i1"
	const policyTerm = " loanPolicy Three"
	for rule, want := range map[string]string{
		"g " + librarytest.AdultsID + policies:                              "patronGroup adults" + policyTerm,
		"g !" + librarytest.OtherID + "+s " + librarytest.MainID + policies: "location Main" + policyTerm,
		"m all" + policies: strings.TrimSpace(policyTerm),
		"m all: l " + strings.ToUpper(librarytest.ThreeID) + " r r1 n n1 o o1 i i1": strings.TrimSpace(policyTerm),
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.RulesText = librarytest.Rules + rule
			e, err := w.service().Explain(t.Context(), checkout.DryRunRequest{ItemBarcode: "book", UserBarcode: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, term := range e.Rule.Terms {
				if got = append(got, term.Kind, term.Name); !strings.Contains(e.Rule.Text, term.ID) {
					t.Errorf("%s is not in the rule %s", term.ID, e.Rule.Text)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("got %q of %s, want %q", got, e.Rule.Text, want)
			}
		})
	}
}

// What an explanation says is what a check-out is refused with.
func TestExplain_AgreesWithADryRun(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.open, w.onLoan, w.Book.Status.Name = []int{3}, true, "Checked out"
	req := checkout.DryRunRequest{ItemBarcode: "book", UserBarcode: "ann", ProxyUserBarcode: "x"}
	e, err := w.service().Explain(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	_, refused := w.service().DryRun(t.Context(), req)
	if got, want := librarytest.Messages(fault.Validation(e.Errors...)), librarytest.Messages(refused); !slices.Equal(got,
		want) || len(want) != 3 {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExplain_FailsForUnusableConfiguration(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*backend){
		"rules that do not compile":  func(w *backend) { w.RulesText = "priority: x" },
		"a policy that is not there": func(w *backend) { w.NoPolicy = true },
		"a patron without a group":   func(w *backend) { w.Patron.PatronGroup = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			prepare(w)
			if e, err := w.service().Explain(t.Context(), checkout.DryRunRequest{
				ItemBarcode: "book", UserBarcode: "ann",
			}); !fault.Is(err, fault.Internal) {
				t.Errorf("got %+v, %v, want %s", e, err, fault.Internal)
			}
		})
	}
}

func TestDryRun_NamesThePoliciesAndLendsNothing(t *testing.T) {
	t.Parallel()
	w := newBackend()
	service := w.service()
	service.Locker, service.Committer, service.Settings, service.Observer = nil, nil, nil, nil // would panic
	got, err := service.DryRun(t.Context(), checkout.DryRunRequest{ItemBarcode: "book", UserBarcode: "ann"})
	want := checkout.DryRun{
		LoanPolicyID: librarytest.ThreeID, OverdueFinePolicyID: "o1", LostItemPolicyID: "i1", PatronNoticePolicyID: "n1",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestDryRun_IsRefusedLikeACheckOut(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*backend, *checkout.DryRunRequest)
		want    []string
	}{
		"nothing is known": {
			func(_ *backend, r *checkout.DryRunRequest) {
				*r = checkout.DryRunRequest{ItemBarcode: "x", UserBarcode: "x"}
			},
			[]string{"Could not find user with matching barcode", "No item with barcode x could be found"},
		},
		"limit reached": {
			func(w *backend, _ *checkout.DryRunRequest) { w.open = []int{3} },
			[]string{"Patron has reached maximum limit of 3 items for material type"},
		},
		"a proxy that is unknown": {
			func(_ *backend, r *checkout.DryRunRequest) { r.ProxyUserBarcode = "x" },
			[]string{"Could not find user with matching barcode"},
		},
		"an override without permission": {
			func(_ *backend, r *checkout.DryRunRequest) { r.OverrideBlocks.PatronBlock = &struct{}{} },
			[]string{"Insufficient override permissions"},
		},
		"no due date": {
			func(w *backend, _ *checkout.DryRunRequest) { w.Policy = strings.Replace(w.Policy, "Weeks", "Years", 1) },
			[]string{`the interval "Years" in the loan policy is not recognised`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, req := newBackend(), checkout.DryRunRequest{ItemBarcode: "book", UserBarcode: "ann"}
			tt.prepare(w, &req)
			_, err := w.service().DryRun(t.Context(), req)
			if got := librarytest.Messages(err); !fault.Is(err, fault.Invalid) || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if len(w.commits)+len(w.requests) > 0 {
				t.Errorf("locked %v and wrote %v", w.requests, w.commits)
			}
		})
	}
}
