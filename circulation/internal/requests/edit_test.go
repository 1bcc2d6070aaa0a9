package requests_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/requests"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// fakeKeeper notes changes of requests.
type fakeKeeper struct {
	library *fakeLibrary
	changes []schemas.RequestChange
	answers []error // of changes; afterwards they succeed

	onChange func() // nil for nothing

	queue []json.RawMessage // of the item or the title with the id wishID
	order schemas.QueueOrder
	moves []schemas.RequestMove
}

func (k *fakeKeeper) MoveRequest(_ context.Context, m schemas.RequestMove) (schemas.PlacedRequest, error) {
	k.moves = append(k.moves, m)
	return schemas.PlacedRequest{Request: m.Request}, k.nextAnswer()
}

func (k *fakeKeeper) ItemQueue(context.Context, string) ([]json.RawMessage, error) {
	return k.queue, k.library.Unread()
}

func (k *fakeKeeper) TitleQueue(context.Context, string) ([]json.RawMessage, error) {
	return k.queue, k.library.Unread()
}

func (k *fakeKeeper) OrderQueue(_ context.Context, o schemas.QueueOrder) (schemas.OrderedQueue, error) {
	k.order = o
	if k.onChange != nil {
		k.onChange()
	}
	return schemas.OrderedQueue{Requests: k.queue}, k.nextAnswer()
}

// newStored is a library with one placed request.
func newStored() *fakeLibrary {
	l := newLibrary()
	l.stored = `{"id":"` + wishID + `","requesterId":"` + annID + `","instanceId":"` + titleID + `","itemId":"` + bookID +
		`",
		"holdingsRecordId":"` + shelfID + `","requestType":"Hold","requestLevel":"Item","requestDate":"2026-03-01T10:00:00Z",
		"fulfillmentPreference":"Hold Shelf","pickupServicePointId":"` + deskID +
		`","status":"Open - Not yet filled","position":1,
		"patronComments":"old","item":{"barcode":"book"},"searchIndex":{"shelvingOrder":"old"}}`
	return l
}

func (k *fakeKeeper) nextAnswer() (err error) {
	if len(k.answers) > 0 {
		err, k.answers = k.answers[0], k.answers[1:]
	}
	return err
}

func (k *fakeKeeper) ChangeRequest(ctx context.Context, c schemas.RequestChange) error {
	k.changes = append(k.changes, c)
	if k.onChange != nil {
		k.onChange()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return k.nextAnswer()
}

// service returns the service of a library with these requests.
func (k *fakeKeeper) service(l *fakeLibrary) *requests.Service {
	s := l.service()
	s.Keeper, k.library = k, l
	return s
}

func TestEdit_SendsTheWholeRequest(t *testing.T) {
	t.Parallel()
	const (
		of = `"id":"` + wishID + `","requesterId":"` + annID + `","instanceId":"` + titleID + `","itemId":"` + bookID +
			`","holdingsRecordId":"` + shelfID + `",
			"requestType":"Hold","requestLevel":"Item","requestDate":"2026-03-01T10:00:00Z"`
		open = of + `,"status":"Open - Not yet filled"`
	)
	tests := map[string]struct {
		titles     bool
		change     func(*fakeLibrary)
		body, want string
	}{
		"another place": {
			body: `{"fulfillmentPreference":"Hold Shelf","pickupServicePointId":"` + deskID + `"}`,
			want: `{` + open + `,"fulfillmentPreference":"Hold Shelf","pickupServicePointId":"` + deskID +
				`","searchIndex":{"pickupServicePointName":"Main desk"}}`,
		},
		"another proxy": {
			change: func(l *fakeLibrary) { l.proxyRelations = []library.ProxyRelation{{Status: "Active"}} },
			body:   `{"fulfillmentPreference":"Delivery","proxyUserId":"` + benID + `"}`,
			want:   `{` + open + `,"fulfillmentPreference":"Delivery","proxyUserId":"` + benID + `","proxy":{"barcode":"ben"}}`,
		},
		"the same proxy, no relation any more": {
			change: func(l *fakeLibrary) { l.stored = strings.Replace(l.stored, "{", `{"proxyUserId":"`+benID+`",`, 1) },
			body:   `{"fulfillmentPreference":"Delivery","proxyUserId":"` + strings.ToUpper(benID) + `"}`,
			want:   `{` + open + `,"fulfillmentPreference":"Delivery","proxyUserId":"` + strings.ToUpper(benID) + `"}`,
		},
		"to be brought": {
			titles: true,
			body: `{"fulfillmentPreference":"Delivery","requestExpirationDate":"2026-05-01T08:00:00Z",` +
				`"deliveryAddressTypeId":"` + otherID + `"}`,
			want: `{` + open + `,"fulfillmentPreference":"Delivery","requestExpirationDate":"2026-05-01T23:59:59.000Z",` +
				`"deliveryAddressTypeId":"` + otherID + `"}`,
		},
		"empty dates are none": {
			body: `{"fulfillmentPreference":"Delivery","requestExpirationDate":"","cancelledDate":""}`,
			want: `{` + open + `,"fulfillmentPreference":"Delivery"}`,
		},
		"as the client has it": {
			body: `{` + strings.ToUpper(`"x":"`+bookID) + `","itemId":"` + strings.ToUpper(bookID) +
				`","fulfillmentPreference":"Delivery","position":7,"item":{"barcode":"x"},"requester":{},"loan":{},` +
				`"patronComments":"new"}`,
			want: `{` + strings.Replace(open, bookID, strings.ToUpper(bookID), 1) + `,"X":"` + strings.ToUpper(bookID) +
				`","fulfillmentPreference":"Delivery","patronComments":"new"}`,
		},
		"cancelled, no such desk any more": {
			body: `{"status":"Closed - Cancelled","cancellationReasonId":"` + otherID + `","cancelledByUserId":"` + annID +
				`","cancelledDate":"2026-03-02","pickupServicePointId":"` + otherID + `"}`,
			want: `{` + of + `,"status":"Closed - Cancelled","fulfillmentPreference":"Hold Shelf","cancellationReasonId":"` +
				otherID + `","cancelledByUserId":"` + annID + `","cancelledDate":"2026-03-02","pickupServicePointId":"` + otherID +
				`"}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, l := &fakeKeeper{}, newStored()
			if l.Titles = tt.titles; tt.change != nil {
				tt.change(l)
			}
			if err := k.service(l).Edit(t.Context(), wishID, []byte(tt.body)); err != nil || len(k.changes) != 1 {
				t.Fatalf("got %v, sent %d changes", err, len(k.changes))
			}
			c := k.changes[0]
			if canonical(t, c.Request) != canonical(t, []byte(tt.want)) || c.TitleLevel != tt.titles || c.Delete {
				t.Errorf("got  %s, %t\nwant %s", canonical(t, c.Request), c.TitleLevel, canonical(t, []byte(tt.want)))
			}
		})
	}
}

func TestEdit_Refusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		code fault.Code
		says string
	}{
		"no object": {body: `[]`, code: fault.Malformed, says: "JSON object"},
		"no JSON":   {body: `{`, code: fault.Malformed},
		"no status": {body: `{"status":"Cancelled"}`, code: fault.Malformed, says: `"Closed - Cancelled"`},
		"another item": {
			body: `{"itemId":"` + otherID + `"}`, code: fault.Invalid, says: "itemId of a request cannot be changed",
		},
		"another patron": {
			body: `{"requesterId":"` + otherID + `"}`, code: fault.Invalid, says: "requesterId of a request cannot be changed",
		},
		"another type": {
			body: `{"requestType":"Recall"}`, code: fault.Invalid,
			says: "requestType of a request cannot be changed by an edit, it is Hold",
		},
		"another level": {
			body: `{"requestLevel":"Title"}`, code: fault.Invalid, says: "requestLevel of a request cannot be changed",
		},
		"no date":             {body: `{"requestExpirationDate":"soon"}`, code: fault.Invalid, says: "requestExpirationDate"},
		"nowhere to fetch it": {body: `{}`, code: fault.Invalid, says: "require a Pickup service point"},
		"no such proxy": {
			body: `{"fulfillmentPreference":"Delivery","proxyUserId":"` + benID + `"}`, code: fault.Invalid,
			says: "proxyUserId is not valid",
		},
		"cancelled, no proxy": {
			body: `{"status":"Closed - Cancelled","proxyUserId":"` + benID + `"}`, code: fault.Invalid,
			says: "proxyUserId is not valid",
		},
		"a proxy for oneself": {
			body: `{"fulfillmentPreference":"Delivery","proxyUserId":"` + annID + `"}`, code: fault.Invalid,
			says: "User cannot be proxy for themselves",
		},
		"no such desk": {
			body: `{"pickupServicePointId":"` + otherID + `"}`, code: fault.Invalid, says: "Pickup service point does not exist",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &fakeKeeper{}
			err := k.service(newStored()).Edit(t.Context(), wishID, []byte(tt.body))
			if !fault.Is(err, tt.code) || !strings.Contains(err.Error(), tt.says) || len(k.changes) != 0 {
				t.Errorf("got %v, sent %d changes, want %s saying %q", err, len(k.changes), tt.code, tt.says)
			}
		})
	}
}

func TestEdit_RefusesAClosedRequestFirst(t *testing.T) {
	t.Parallel()
	k, l := &fakeKeeper{}, newStored()
	l.stored = strings.Replace(l.stored, "Open - Not yet filled", "Closed - Filled", 1)
	for _, body := range []string{
		`{"status":"Closed - Filled","itemId":"` + otherID + `"}`, `{"status":"Closed - Cancelled"}`,
	} {
		err := k.service(l).Edit(t.Context(), wishID, []byte(body))
		if !fault.Is(err, fault.Invalid) || !strings.HasSuffix(err.Error(), "The Request has already been closed") ||
			len(k.changes) != 0 {
			t.Errorf("%s: got %v, sent %d changes", body, err, len(k.changes))
		}
	}
}

// A client that got no answer cancels the request again. Storage judges whether it is the same.
func TestEdit_SendsARepeatedCancellation(t *testing.T) {
	t.Parallel()
	k, l := &fakeKeeper{}, newStored()
	l.stored = strings.Replace(l.stored, "Open - Not yet filled", "Closed - Cancelled", 1)
	if err := k.service(l).Edit(t.Context(), wishID, []byte(`{"status":"Closed - Cancelled"}`)); err != nil ||
		len(k.changes) != 1 {
		t.Errorf("got %v, sent %d changes", err, len(k.changes))
	}
}

func TestChanges_AreSentAgainUntilTheOutcomeIsKnown(t *testing.T) {
	t.Parallel()
	lost, closed := fault.New(fault.Unavailable, "no answer"), fault.New(fault.Invalid, "closed")
	for name, tt := range map[string]struct {
		answers []error
		want    error
		tries   int
	}{
		"answers were lost": {answers: []error{lost, fault.New(fault.Timeout, "late")}, tries: 3},
		"refused later":     {answers: []error{lost, closed}, want: closed, tries: 2},
	} {
		for kind, change := range map[string]func(*requests.Service) error{
			"edit":   func(s *requests.Service) error { return s.Edit(t.Context(), wishID, body(t, nil)) },
			"delete": func(s *requests.Service) error { return s.Delete(t.Context(), wishID) },
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				k := &fakeKeeper{answers: tt.answers}
				if err := change(k.service(newStored())); !errors.Is(err, tt.want) || len(k.changes) != tt.tries {
					t.Fatalf("got %v after %d tries, want %v after %d", err, len(k.changes), tt.want, tt.tries)
				}
				for _, sent := range k.changes {
					if sent.ID == "" || sent.ID != k.changes[0].ID {
						t.Errorf("the repeat has the id %q, want %q", sent.ID, k.changes[0].ID)
					}
				}
			})
		}
	}
}

// A client leaves while the change is written, and another one before.
func TestChanges_OfAClientThatLeaves(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	k := &fakeKeeper{onChange: leave, answers: []error{fault.New(fault.Unavailable, "no answer")}}
	s := k.service(newStored())
	if err := s.Delete(ctx, wishID); err != nil || len(k.changes) != 2 {
		t.Errorf("got %v after %d tries, want success after 2", err, len(k.changes))
	}
	if err := s.Delete(ctx, wishID); !errors.Is(err, context.Canceled) || len(k.changes) != 2 {
		t.Errorf("got %v, want nothing sent for a client that left", err)
	}
}

func TestEdit_PlacesAnUnknownRequest(t *testing.T) {
	t.Parallel()
	k, l := &fakeKeeper{}, newLibrary()
	if err := k.service(l).Edit(t.Context(), wishID, body(t, map[string]any{"id": nil})); err != nil ||
		len(l.placed) != 1 || len(k.changes) != 0 {
		t.Fatalf("got %v, placed %d, sent %d changes", err, len(l.placed), len(k.changes))
	}
	if !strings.Contains(string(l.placed[0].Request), wishID) {
		t.Errorf("placed %s, want the id of the path", l.placed[0].Request)
	}
}

// A librarian cancels a request that another one has deleted meanwhile.
func TestEdit_PlacesNoRequestToCloseIt(t *testing.T) {
	t.Parallel()
	k, l := &fakeKeeper{}, newLibrary()
	err := k.service(l).Edit(t.Context(), wishID, body(t, map[string]any{"status": "Closed - Cancelled"}))
	if !fault.Is(err, fault.NotFound) || len(l.placed) != 0 || len(k.changes) != 0 {
		t.Errorf("got %v, placed %d, sent %d changes", err, len(l.placed), len(k.changes))
	}
}

// A request that was moved between its reading and its writing is read again, once.
func TestChanges_ReadAChangedRequestAgain(t *testing.T) {
	t.Parallel()
	changed := fault.New(fault.RequestChanged, "changed")
	for name, change := range map[string]func(*requests.Service) error{
		"edit":   func(s *requests.Service) error { return s.Edit(t.Context(), wishID, body(t, nil)) },
		"delete": func(s *requests.Service) error { return s.Delete(t.Context(), wishID) },
	} {
		for refusals, wanted := range map[int]fault.Code{1: "", 2: fault.RequestChanged} {
			k := &fakeKeeper{}
			k.answers = []error{changed, changed}[:refusals]
			if err := change(k.service(newStored())); fault.CodeOf(err) != wanted || len(k.changes) != 2 {
				t.Errorf("%s, %d refusals: got %v after %d changes", name, refusals, err, len(k.changes))
			}
		}
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	k := &fakeKeeper{}
	odd := newStored()
	odd.stored = strings.NewReplacer(`"Hold Shelf"`, `"Drone"`, `"requestLevel":"Item"`,
		`"requestLevel":5`).Replace(odd.stored)
	const ids = `{"id":"` + wishID + `","instanceId":"` + titleID + `","itemId":"` + bookID + `"}`
	if err := k.service(odd).Delete(t.Context(), wishID); err != nil || len(k.changes) != 1 || !k.changes[0].Delete ||
		string(k.changes[0].Request) != ids {
		t.Errorf("got %v, %+v", err, k.changes)
	}
	if err := jsonschema.Validate("request-change", encode(t, k.changes[0])); err != nil {
		t.Errorf("storage refuses the deletion of a request that does not fit its schema: %v", err)
	}
	if err := k.service(newStored()).Delete(t.Context(), otherID); !fault.Is(err, fault.NotFound) || len(k.changes) != 1 {
		t.Errorf("an unknown one: got %v", err)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
