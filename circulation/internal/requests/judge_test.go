package requests_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// readDetails returns the details of a refusal; nil for another error.
func readDetails(err error) fault.List {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Invalid {
		return nil
	}
	return f.Details
}

// The statuses are FOLIO's white list, in full.
func TestCreate_AllowsTypesByTheStatusOfTheItem(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{ // the first letters of the types
		"Available": "P", "Restricted": "HPR", "Missing": "H", "Checked out": "HR", "Awaiting pickup": "HR",
		"Awaiting delivery": "HR",
		"In transit":        "HR", "Paged": "HR", "On order": "HR", "In process": "HR", "Declared lost": "",
		"Claimed returned": "", "Withdrawn": "",
		"Lost and paid": "", "Aged to lost": "", "Intellectual item": "", "In process (non-requestable)": "",
		"Long missing": "",
		"Unavailable":  "", "Unknown": "",
	}
	for status, types := range allowed {
		for _, kind := range []string{"Hold", "Page", "Recall"} {
			l := newLibrary()
			l.Book.Status.Name = status
			_, err := l.create(t, map[string]any{"requestType": kind})
			details := readDetails(err)
			switch wanted := strings.Contains(types, kind[:1]); {
			case wanted && err != nil:
				t.Errorf("%s of an item that is %s: got %v", kind, status, err)
			case !wanted && (len(details) != 1 || details[0].Code != "REQUEST_NOT_ALLOWED_FOR_PATRON_ITEM_COMBINATION"):
				t.Errorf("%s of an item that is %s: got %v, want it refused", kind, status, err)
			}
		}
	}
}

func TestCreate_AsksTheRequestPolicy(t *testing.T) {
	t.Parallel()
	hold := map[string]any{}
	const elsewhere = "One or more Pickup locations are no longer available"
	for _, tt := range []struct {
		name, policy string
		change       map[string]any
		status       string // of the book
		says         string // "" is placed
	}{
		{name: "listed", policy: `{"id":"p","requestTypes":["Hold"]}`},
		{
			name: "not listed", policy: `{"id":"p","requestTypes":["Page","Recall"]}`,
			says: "Hold requests are not allowed for this patron and item combination",
		},
		{
			name: "none listed", policy: `{"id":"p"}`,
			says: "Hold requests are not allowed for this patron and item combination",
		},
		{
			name: "page not listed", policy: `{"id":"p","requestTypes":["Hold"]}`, change: map[string]any{"requestType": "Page"},
			status: "Available", says: "Page requests are not allowed for this patron and item combination",
		},
		{
			name: "neither by policy nor by status", policy: `{"id":"p","requestTypes":["Hold"]}`,
			change: map[string]any{"requestType": "Page"},
			says:   "Page requests are not allowed for this patron and item combination",
		},
		{
			name:   "another desk",
			policy: `{"id":"p","requestTypes":["Hold"],"allowedServicePoints":{"Hold":["` + otherID + `"]}}`, says: elsewhere,
		},
		{
			name:   "this desk",
			policy: `{"id":"p","requestTypes":["Hold"],"allowedServicePoints":{"Hold":["` + strings.ToUpper(deskID) + `"]}}`,
		},
		{
			name:   "another desk for another type",
			policy: `{"id":"p","requestTypes":["Hold"],"allowedServicePoints":{"Page":["` + otherID + `"]}}`,
		},
		{
			name:   "another desk, brought to the patron",
			policy: `{"id":"p","requestTypes":["Hold"],"allowedServicePoints":{"Hold":["` + otherID + `"]}}`,
			change: map[string]any{"fulfillmentPreference": "Delivery"},
		},
	} {
		l := newLibrary()
		l.allowed = tt.policy
		if tt.status != "" {
			l.Book.Status.Name = tt.status
		}
		change := hold
		if tt.change != nil {
			change = tt.change
		}
		_, err := l.create(t, change)
		details := readDetails(err)
		if (err == nil) != (tt.says == "") || err != nil && (len(details) != 1 || details[0].Message != tt.says) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.says)
		}
	}
}

func TestCreate_OfRulesWithoutTheirPolicy(t *testing.T) {
	t.Parallel()
	l := newLibrary()
	l.allowed = ""
	if _, err := l.create(t, nil); !fault.Is(err, fault.Internal) ||
		!strings.Contains(err.Error(), "Request policy r1 could not be found") {
		t.Errorf("got %v, want the missing policy named", err)
	}
}

func TestCreate_JudgesBlocks(t *testing.T) {
	t.Parallel()
	const (
		byHand = "Patron blocked from requesting|USER_IS_BLOCKED_MANUALLY"
		byRule = "Too many|USER_IS_BLOCKED_AUTOMATICALLY"
		noMay  = "Insufficient override permissions|INSUFFICIENT_OVERRIDE_PERMISSIONS"
	)
	lifted := map[string]any{
		"requestProcessingParameters": map[string]any{
			"overrideBlocks": map[string]any{"patronBlock": map[string]any{}, "comment": "agreed"},
		},
	}
	for _, tt := range []struct {
		name      string
		manual    library.ManualBlock
		automated library.AutomatedBlock
		lifted    bool
		may       bool // lift blocks
		want      []string
	}{
		{
			name: "blocked from borrowing", manual: library.ManualBlock{Borrowing: true, Renewals: true},
			automated: library.AutomatedBlock{BlockBorrowing: true, BlockRenewals: true},
		},
		{name: "by hand", manual: library.ManualBlock{Requests: true, Desc: "owes"}, want: []string{byHand}},
		{
			name:   "by hand, expired",
			manual: library.ManualBlock{Requests: true, ExpirationDate: library.Instant{Time: time.Unix(0, 0)}},
		},
		{
			name: "both", manual: library.ManualBlock{Requests: true},
			automated: library.AutomatedBlock{BlockRequests: true, Message: "Too many"}, want: []string{byHand, byRule},
		},
		{
			name: "lifted", manual: library.ManualBlock{Requests: true}, automated: library.AutomatedBlock{BlockRequests: true},
			lifted: true, may: true,
		},
		{
			name: "lifted without the permission", manual: library.ManualBlock{Requests: true}, lifted: true,
			want: []string{noMay},
		},
		{name: "lifted without need or permission", lifted: true, want: []string{noMay}},
	} {
		l := newLibrary()
		l.Manual, l.Automated = []library.ManualBlock{tt.manual}, []library.AutomatedBlock{tt.automated}
		var change map[string]any
		if tt.lifted {
			change = lifted
		}
		ctx := t.Context()
		if tt.may {
			ctx = okapi.NewContext(ctx, okapi.Call{Permissions: []string{library.PatronBlock.Permission}})
		}
		_, err := l.service().Create(ctx, body(t, change))
		var got []string
		for _, d := range readDetails(err) {
			got = append(got, d.Message+"|"+d.Code)
			if d.OverridableBlock == nil || d.OverridableBlock.Name != "patronBlock" ||
				len(d.OverridableBlock.MissingPermissions) != 1 {
				t.Errorf("%s: %s names the block %v", tt.name, d.Message, d.OverridableBlock)
			}
		}
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
		if err == nil && strings.Contains(string(l.placed[0].Request), "requestProcessingParameters") {
			t.Errorf("%s: the override is stored", tt.name)
		}
	}
}

func TestCreate_EndsAtTheEndOfADay(t *testing.T) {
	t.Parallel()
	for date, want := range map[string]string{
		"2026-03-01T10:00:00Z":      `"2026-03-01T23:59:59.000Z"`,
		"2026-03-01T23:30:00-05:00": `"2026-03-02T23:59:59.000Z"`,
	} {
		l := newLibrary()
		if _, err := l.create(t, map[string]any{"requestExpirationDate": date}); err != nil ||
			!strings.Contains(string(l.placed[0].Request), want) {
			t.Errorf("%s: got %v, placed %v, want %s", date, err, l.placed, want)
		}
	}
}

// A client that lost the answer sends the same request again.
func TestCreate_AnswersARepeat(t *testing.T) {
	t.Parallel()
	page := map[string]any{"requestType": "Page"} // which the book's status does not allow any more
	l := newLibrary()
	l.stored = `{"id":"` + wishID + `","requesterId":"` + annID + `","instanceId":"` + titleID + `","position":3}`
	if got, err := l.create(t, page); err != nil || string(got) != l.stored || len(l.placed) != 0 {
		t.Errorf("got %s, %v, placed %d, want the stored request", got, err, len(l.placed))
	}
	l.stored = strings.Replace(l.stored, annID, otherID, 1)
	if _, err := l.create(t, nil); len(readDetails(err)) != 1 ||
		readDetails(err)[0].Message != "The id is that of another request" {
		t.Errorf("another patron's id: got %v", err)
	}
	l.stored = `[]`
	if _, err := l.create(t, nil); err == nil || readDetails(err) != nil {
		t.Errorf("a stored list: got %v, want a failure", err)
	}
}

// secondRead is a library in which a request with the id is placed after the first look for it.
type secondRead struct {
	*fakeLibrary
	looks int
}

func (l *secondRead) Request(ctx context.Context, id string) (json.RawMessage, error) {
	if l.looks++; l.looks == 1 {
		return nil, errNone
	}
	return l.fakeLibrary.Request(ctx, id)
}

// A client sends the same request again while the first one is being placed.
func TestCreate_AnswersARepeatBesideTheFirst(t *testing.T) {
	t.Parallel()
	page := map[string]any{"requestType": "Page"}
	for name, tt := range map[string]struct {
		patron string // of the stored request
		fails  bool
	}{
		"placed meanwhile":                      {patron: annID},
		"another patron's was placed meanwhile": {patron: otherID, fails: true},
	} {
		l := newLibrary()
		l.Book.Status.Name = "Paged"
		l.stored = `{"id":"` + wishID + `","requesterId":"` + tt.patron + `","instanceId":"` + titleID + `"}`
		s := l.service()
		s.Library = &secondRead{fakeLibrary: l}
		got, err := s.Create(t.Context(), body(t, page))
		if fault.Is(err, fault.Invalid) != tt.fails || string(got) != l.stored && !tt.fails || len(l.placed) != 0 {
			t.Errorf("%s: got %s, %v, placed %d", name, got, err, len(l.placed))
		}
	}
}

func TestCreate_SendsACommitWithoutAnAnswerAgain(t *testing.T) {
	t.Parallel()
	l := newLibrary()
	l.answers = []error{fault.New(fault.Unavailable, "lost"), context.DeadlineExceeded}
	if _, err := l.create(t, map[string]any{"id": nil}); err != nil || len(l.placed) != 3 {
		t.Fatalf("got %v after %d tries, want success after 3", err, len(l.placed))
	}
	for _, p := range l.placed[1:] {
		if string(p.Request) != string(l.placed[0].Request) {
			t.Errorf("got %s, then %s, want the same id again", l.placed[0].Request, p.Request)
		}
	}
}

func TestCreate_WritesNothingForAClientThatLeft(t *testing.T) {
	t.Parallel()
	l := newLibrary()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.service().Create(ctx, body(t, nil)); !errors.Is(err, context.Canceled) || len(l.placed) != 0 {
		t.Errorf("got %v, placed %d", err, len(l.placed))
	}
}
