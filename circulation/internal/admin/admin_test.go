package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// details are the messages of an Invalid fault; none for any other error.
func details(err error) (messages []string) {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.Invalid {
		for _, d := range f.Details {
			messages = append(messages, d.Message)
		}
	}
	return messages
}

func TestService_Settings(t *testing.T) {
	t.Parallel()
	b := &backend{problem: errors.New("no good")}
	if e := b.service().Environment(); e.TTL != environment.TTL {
		t.Errorf("the environment is %+v", e)
	}
	view, err := b.service().Settings(t.Context())
	if err != nil || view.Problem != "no good" || view.LockTTLMs.Value != 3000 {
		t.Errorf("got %+v, %v", view, err)
	}
	ctx := okapi.NewContext(t.Context(), okapi.Call{UserName: "ann"})
	view, err = b.service().ChangeSettings(ctx, settings.Change{
		Own: schemas.LockSettings{Enabled: new(true)}, Version: "7", Reason: "exams",
	})
	if err != nil || view.Version != "8" || !*b.change.Own.Enabled || b.change.Version != "7" ||
		b.asked[1] != `update: "exams" by "ann"` {
		t.Errorf("got %+v, %v, changed to %+v, asked %q", view, err, b.change, b.asked)
	}
	b.err = fault.New(fault.Conflict, "changed")
	if _, err := b.service().ChangeSettings(ctx, settings.Change{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want %s", err, fault.Conflict)
	}
	if _, err := b.service().Settings(ctx); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want storage's fault", err)
	}
}

func TestService_NamesTheActor(t *testing.T) {
	t.Parallel()
	user := func(username, first, last string) []library.User {
		return []library.User{{ID: staffID, Username: username, Personal: library.Personal{FirstName: first, LastName: last}}}
	}
	tests := map[string]struct {
		info    okapi.Call
		users   []library.User
		noUsers error
		want    string
		lookups int
	}{
		"by a password":             {info: okapi.Call{UserName: "ann"}, want: "ann"},
		"by a password, with an id": {info: okapi.Call{UserName: "ann", UserID: staffID}, want: "ann"},
		"by the gateway": {
			info: okapi.Call{UserID: staffID}, users: user("ann", "Ann", "Reader"), want: "Reader, Ann", lookups: 1,
		},
		"without a proper name":  {info: okapi.Call{UserID: staffID}, users: user("ann", "", ""), want: "ann", lookups: 1},
		"without a record":       {info: okapi.Call{UserID: staffID}, want: "", lookups: 1},
		"when it cannot be read": {info: okapi.Call{UserID: staffID}, noUsers: errors.New("down"), want: "", lookups: 1},
		"not at all":             {want: ""},
		"unprintable and long": {
			info: okapi.Call{UserName: " a\x00\n\xff" + strings.Repeat("é", 120)}, want: "a" + strings.Repeat("é", 99),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{users: tt.users, noUsers: tt.noUsers}
			if _, err := b.service().Release(okapi.NewContext(t.Context(), tt.info), lockID, "stuck"); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("release %s: %q by %q", lockID, "stuck", tt.want)
			if got := b.asked[len(b.asked)-1]; got != want || len(b.asked)-1 != tt.lookups {
				t.Errorf("asked %q, want %s after %d lookups", b.asked, want, tt.lookups)
			}
		})
	}
}

func TestService_Release(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := &backend{}
	s := admin.NewService(b, b, environment, b, slog.New(slog.NewTextHandler(&log, nil)))
	lock, err := s.Release(t.Context(), lockID, " machine 4 is stuck\r\nagain ")
	if err != nil || lock.ID != lockID || b.asked[0] != `release `+lockID+`: "machine 4 is stuck\nagain" by ""` {
		t.Errorf("got %+v, %v, asked %q", lock, err, b.asked)
	}
	if !strings.Contains(log.String(), lockID) || strings.Contains(log.String(), annID) {
		t.Errorf("logged %s, want the lock and no patron", &log)
	}
	for reason, want := range map[string]string{
		" \n":                    "reason is required, 1 to 500 characters",
		strings.Repeat("x", 501): "reason must have at most 500 characters, not 501",
		"a\x00":                  "reason must have no control characters but line breaks and tabs",
	} {
		_, err := s.Release(t.Context(), lockID, reason)
		if got := details(err); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: got %v, want %s", reason, err, want)
		}
		var f *fault.Error
		if errors.As(err, &f) && f.Details[0].Parameters[0].Key != "reason" {
			t.Errorf("%q: about %+v, want reason", reason, f.Details[0].Parameters)
		}
	}
	if len(b.asked) != 1 {
		t.Errorf("asked %q", b.asked)
	}
	b.err = fault.New(fault.NotFound, "Not found")
	log.Reset()
	if _, err := s.Release(t.Context(), lockID, "stuck"); !fault.Is(err, fault.NotFound) ||
		!strings.Contains(err.Error(), "no such lock any more") || log.Len() > 0 {
		t.Errorf("got %v, logged %s, want %s", err, &log, fault.NotFound)
	}
}

func TestService_ListsWhatStorageHas(t *testing.T) {
	t.Parallel()
	const holder = "holder must have at most 100 printable characters"
	tests := map[string]struct {
		ask   func(*admin.Service, context.Context) (any, error)
		want  string // what storage is asked
		wrong string // instead of it
	}{
		"locks": {
			ask: locks(admin.LockFilter{UserID: annID, Holder: "c 1", Limit: 1000}), want: "locks " + annID + " c 1 0 1000",
			wrong: "",
		},
		"locks of no possible holder": {ask: locks(admin.LockFilter{Holder: "a\n"}), want: "", wrong: holder},
		"locks of a long holder": {
			ask: locks(admin.LockFilter{Holder: strings.Repeat("x", 101)}), want: "", wrong: holder,
		},
		"changes": {ask: func(s *admin.Service, ctx context.Context) (any, error) {
			return s.LockChanges(ctx, "release", 5, 200)
		}, want: "changes release 5 200", wrong: ""},
		"history": {ask: func(s *admin.Service, ctx context.Context) (any, error) {
			return s.PastCheckOuts(ctx, schemas.HistoryFilter{UserBarcode: "ann", Offset: 10000, Limit: 200})
		}, want: "history ann 10000 200", wrong: ""},
		"figures": {
			ask:  func(s *admin.Service, ctx context.Context) (any, error) { return s.Figures(ctx, lastMinutes(1440)) },
			want: "figures diku 1440", wrong: "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{}
			_, err := tt.ask(b.service(), inTenant(t, "diku"))
			if got := strings.Join(details(err), ", "); got != tt.wrong || (err != nil) != (tt.wrong != "") {
				t.Errorf("got %v, want %q", err, tt.wrong)
			}
			if got := strings.Join(b.asked, ", "); got != tt.want {
				t.Errorf("asked %s, want %s", got, tt.want)
			}
		})
	}
}

func locks(f admin.LockFilter) func(*admin.Service, context.Context) (any, error) {
	return func(s *admin.Service, ctx context.Context) (any, error) { return s.Locks(ctx, f) }
}

func TestService_FindsPatrons(t *testing.T) {
	t.Parallel()
	b := &backend{users: []library.User{{ID: annID, Barcode: "ann"}}}
	ids := []string{staffID, annID, staffID}
	found, err := b.service().Patrons(t.Context(), ids)
	if err != nil || len(found) != 1 || found[annID].Barcode != "ann" || b.asked[0] != "users "+staffID+" "+annID {
		t.Errorf("got %v, %v, asked %q", found, err, b.asked)
	}
	if !slices.Equal(ids, []string{staffID, annID, staffID}) {
		t.Errorf("the caller's list became %v", ids)
	}
	if id, err := b.service().PatronID(t.Context(), "ann"); err != nil || id != annID {
		t.Errorf("got %s, %v", id, err)
	}
	for _, barcode := range []string{"", "a\x00", strings.Repeat("x", 1001)} {
		if _, err := b.service().PatronID(t.Context(), barcode); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: got %v, want %s", barcode, err, fault.NotFound)
		}
	}
	if len(b.asked) != 2 {
		t.Errorf("asked %q", b.asked)
	}
	b.noUsers = fault.New(fault.Unavailable, "down")
	if _, err := b.service().Patrons(t.Context(), ids); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s", err, fault.Unavailable)
	}
}

func TestService_Lock(t *testing.T) {
	t.Parallel()
	b := &backend{}
	if l, err := b.service().Lock(t.Context(), lockID); err != nil || l.ID != lockID || b.asked[0] != "lock "+lockID {
		t.Errorf("got %+v, %v, asked %q", l, err, b.asked)
	}
}

func TestService_EndsWithTheFirstFailure(t *testing.T) {
	t.Parallel()
	findAnn := func(ctx context.Context, s *admin.Service) error { return readError(s.FindPatron(ctx, "anna")) }
	review := func(ctx context.Context, s *admin.Service) error { return readError(s.ReviewLimit(ctx)) }
	rules := func(ctx context.Context, s *admin.Service) error { return readError(s.Rules(ctx)) }
	for _, tt := range []struct {
		failing string // the last call
		do      func(context.Context, *admin.Service) error
	}{
		{failing: "named", do: findAnn},
		{failing: "search anna", do: findAnn},
		{failing: "search ann,", do: findAnn},
		{failing: "read", do: review},
		{failing: "changes", do: review},
		{failing: "limit", do: review},
		{failing: "rules", do: rules},
		{failing: "policies", do: rules},
		{failing: "existing", do: rules},
		{failing: "user", do: func(ctx context.Context, s *admin.Service) error { return readError(s.PatronID(ctx, "ann")) }},
	} {
		b := &backend{err: errors.New("down"), failing: tt.failing}
		b.rules = "priority: last-line\nfallback-policy: l free r r1 n n1 o o1 i i1\n"
		b.current = environment.Settings()
		b.current.Enabled, b.current.EnabledSource, b.current.Version = true, settings.FromTenant, "7"
		err := tt.do(inTenant(t, "diku"), b.service())
		if !errors.Is(err, b.err) || !strings.HasPrefix(b.asked[len(b.asked)-1], tt.failing) {
			t.Errorf("got %v after %q, want it to end with %s", err, b.asked, tt.failing)
		}
	}
}

func TestService_Explain(t *testing.T) {
	t.Parallel()
	b := &backend{}
	if e, err := b.service().Explain(t.Context(), checkout.DryRunRequest{ItemBarcode: "book"}); err != nil ||
		!e.WouldLend || b.asked[0] != "explain book" {
		t.Errorf("got %+v, %v, asked %q", e, err, b.asked)
	}
}
