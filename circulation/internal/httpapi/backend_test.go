package httpapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/httpapi"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/loans"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/circulation/internal/requests"
	"checkoutlock/circulation/internal/worklist"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

const (
	loanID   = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	policyID = "43198de5-f56a-4a53-a0bd-5a324418967a"

	requestPolicyID = "d9cd0bed-1b49-4b5e-a7bd-064b8d177231"
	noticePolicyID  = "122b3d2b-4788-4f1e-9117-56daa91cb75c"
)

// backend is everything behind the handlers.
type backend struct {
	httpapi.Storage // what no test here needs

	err error // of every call

	itemLimit int          // of the loan policy; 0 is none
	log       *slog.Logger // of the handlers; nil discards

	matching int // loans or requests in a list; 0 is one

	asked     checkout.Request
	lease     checkout.KeyLease // of the check-out
	caller    okapi.Call        // of the check-out
	admitted  []string          // the patrons of admitted check-outs
	full      error             // of every check-out that asks for a place
	ended     []checkin.EndSession
	renewal   renewal.Request
	sought    string // a loan's id
	committed bool   // the loan that is sought exists
	keys      keyed.Storage
	extra     http.Header // of every request that is sent
	returned  checkin.Request
	in        checkin.Returned
	query     string
	offset    int
	limit     int
	noUsers   error // of reading the records around a loan or request
	notStored error // of storing rules
	rules     string
	wish      string // the body of a new request
	question  requests.AllowedQuestion
	setting   string // as stored
	wished    loans.Wish
	written   string // what happened to loans
	adminFake        // see admin_test.go
}

const storedLoan = `{"id":"` + loanID + `","userId":"u","itemId":"i","itemStatus":"Checked out"}`

func (b *backend) Admit(_ context.Context, req checkout.Request) (func(), error) {
	if b.full != nil {
		return nil, b.full
	}
	b.admitted = append(b.admitted, req.UserBarcode)
	return func() {}, nil
}

func (b *backend) Fail(context.Context, checkout.Request, checkout.KeyLease, time.Time, error) {}

func (b *backend) CheckOut(ctx context.Context, req checkout.Request) (checkout.Lent, error) {
	b.asked, b.caller = req, okapi.FromContext(ctx)
	return checkout.Lent{
		LoanID: loanID, Loan: json.RawMessage(storedLoan), Copy: library.Copy{Item: library.Item{ID: "i"}},
		User: library.User{ID: "u", Barcode: "569"},
	}, b.err
}

func (b *backend) Lend(ctx context.Context, req checkout.Request, lease checkout.KeyLease) (checkout.Lent, error) {
	b.lease = lease
	return b.CheckOut(ctx, req)
}

func (b *backend) Committed(_ context.Context, _ checkout.Request, loanID string) (checkout.Lent, bool, error) {
	b.sought = loanID
	return checkout.Lent{
		LoanID: loanID, Loan: json.RawMessage(storedLoan), Copy: library.Copy{Item: library.Item{ID: "i"}},
		User: library.User{ID: "u", Barcode: "569"},
	}, b.committed, b.err
}

func (b *backend) CheckIn(_ context.Context, req checkin.Request) (checkin.Returned, error) {
	b.returned = req
	return b.in, b.err
}

func (b *backend) Loan(_ context.Context, id string) (json.RawMessage, error) {
	if id != loanID {
		return nil, fault.New(fault.NotFound, "Not found")
	}
	return json.RawMessage(storedLoan), b.err
}

func (b *backend) Loans(_ context.Context, query string, offset, limit int) ([]json.RawMessage, int, error) {
	b.query, b.offset, b.limit = query, offset, limit
	return b.page(storedLoan, limit), 17, b.err
}

func (b *backend) Users(context.Context, []string) ([]library.User, error) {
	return []library.User{{ID: "u", Barcode: "569"}}, b.noUsers
}

func (b *backend) Items(context.Context, []string) ([]library.Item, error) {
	return []library.Item{{ID: "i"}}, nil
}

func (b *backend) HoldingsRecords(context.Context, []string) ([]library.Holdings, error) {
	return nil, nil
}

func (b *backend) Instances(context.Context, []string) ([]library.Instance, error) { return nil, nil }

var errNone = fault.New(fault.NotFound, "Not found")

func (b *backend) Location(context.Context, string) (library.Location, error) {
	return library.Location{}, errNone
}

func (b *backend) ServicePoint(context.Context, string) (library.ServicePoint, error) {
	return library.ServicePoint{}, errNone
}

func (b *backend) Named(_ context.Context, kind library.NamedKind, id string) (library.Named, error) {
	switch {
	case kind != library.AddressType:
		return library.Named{}, errNone
	case id != "home":
		return library.Named{}, fault.New(fault.Unavailable, "away")
	}
	return library.Named{ID: id, Name: "Home"}, nil
}

func (b *backend) OpenLoans(context.Context, []string) ([]library.OpenLoan, error) {
	return nil, nil
}

func (b *backend) Group(context.Context, string) (library.Group, error) {
	return library.Group{}, errNone
}

func (b *backend) LoanPolicy(context.Context, string) (policy.LoanPolicy, error) {
	return policy.LoanPolicy{}, errNone
}

func (b *backend) StoredRules(context.Context) (schemas.CirculationRules, error) {
	return schemas.CirculationRules{ID: "1", RulesAsText: b.rules}, b.err
}

func (b *backend) PutRules(_ context.Context, text string) error {
	b.rules = text
	return cmp.Or(b.notStored, b.err)
}

func (b *backend) ExistingPolicies(_ context.Context, kind policy.Kind, ids []string) ([]string, error) {
	existing := map[policy.Kind]string{
		policy.KindLoan: policyID, policy.KindRequest: requestPolicyID, policy.KindNotice: noticePolicyID,
		policy.KindOverdueFine: "o1", policy.KindLostItem: "i1",
	}[kind]
	if slices.Contains(ids, existing) {
		return []string{existing}, b.err
	}
	return nil, b.err
}

// LoanPolicyRecords has the policy with an item limit.
func (b *backend) LoanPolicyRecords(_ context.Context, ids []string) ([]policy.LoanPolicy, error) {
	if slices.Contains(ids, policyID) {
		return []policy.LoanPolicy{{ID: policyID, Name: "Three", ItemLimit: b.itemLimit}}, b.err
	}
	return nil, b.err
}

// send makes a request of a service with this backend.
func (b *backend) send(t *testing.T, method, target, body string) (status int, header http.Header, answer string) {
	t.Helper()
	log := cmp.Or(b.log, slog.New(slog.DiscardHandler))
	mode := cmp.Or(b.mode, auth.None)
	front, err := httpapi.New(httpapi.Options{
		Keyed:    &keyed.Requests{Storage: b.keys, CheckOuts: b, Ended: func(keyed.Outcome) {}, Log: log},
		CheckOut: b.CheckOut, CheckIn: b.CheckIn, Storage: b, RulesFor: b.RulesFor, DryRun: b.DryRun,
		EndSessions: b.End, Renewals: b, Requests: b, LoanChanges: b,
		Worklists: &worklist.Service{},
		Log:       log,
		Admin:     cmp.Or[admin.Desk](b.real, &b.adminFake), Guard: auth.NewGuard(auth.Settings{
			Auth: mode, Password: staffPassword,
		}, checkout.OverridePermissions(), log),
	})
	if err != nil {
		t.Fatal(err)
	}
	handler := web.New(web.Options{
		Log: log, Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: 1000, JSONFaults: true,
		BelievePermissions: mode == auth.Gateway,
		Ready:              func(context.Context) error { return nil },
	}, front.Routes)
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Host = cmp.Or(b.host, "localhost")
	for name, values := range b.extra {
		r.Header[name] = values
	}
	r.Header.Set(okapi.TenantHeader, "diku")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	raw, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Header(), strings.TrimSpace(string(raw))
}
