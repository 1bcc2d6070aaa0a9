package worklist_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/worklist"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	bookID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	annID  = "77477611-ab44-4082-a0d8-42f7acdfde11"
	hereID = "bbc823fa-06e7-42c6-87b5-605a5da22f15"
)

// shelf is a library with one item and its requests. All that names a record does so in capitals.
type shelf struct {
	worklist.Library
	request schemas.QueuedRequest
	waiting []schemas.QueuedRequest

	mu    sync.Mutex
	calls []string
	fail  string // the call that fails with errDown
}

var errDown = errors.New("down")

func (s *shelf) note(call string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	if call == s.fail {
		return errDown
	}
	return nil
}

func (s *shelf) LocationsServed(context.Context, string) ([]library.Location, error) {
	return []library.Location{{ID: hereID}}, s.note("locations")
}

func (s *shelf) UnfilledRequests(context.Context, string, int) ([]schemas.QueuedRequest, error) {
	return []schemas.QueuedRequest{s.request}, s.note("requests")
}

func (s *shelf) SettingValue(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{"printHoldRequestsEnabled":true}`), s.note("setting")
}

func (s *shelf) Items(_ context.Context, ids []string) ([]library.Item, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return []library.Item{{ID: bookID, EffectiveLocationID: strings.ToUpper(hereID)}}, s.note("items")
}

func (s *shelf) ItemsInStatus(ctx context.Context, _ string, _ int) ([]library.Item, int, error) {
	items, err := s.Items(ctx, []string{bookID})
	return items, 1, err
}

func (s *shelf) TitleHoldings(_ context.Context, ids []string) ([]library.Holdings, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return []library.Holdings{
		{InstanceID: strings.ToUpper(bookID), EffectiveLocationID: strings.ToUpper(hereID)},
		{InstanceID: strings.ToUpper(bookID)},
	}, s.note("holdings")
}

func (s *shelf) Instances(context.Context, []string) ([]library.Instance, error) {
	return []library.Instance{{ID: bookID, Title: "Emma"}}, nil
}

func (s *shelf) Users(context.Context, []string) ([]library.User, error) {
	return []library.User{{ID: annID}}, s.note("users")
}

func (s *shelf) WaitingForPickup(context.Context, []string) ([]schemas.QueuedRequest, error) {
	return s.waiting, s.note("waiting")
}

func (s *shelf) EndedPickups(_ context.Context, ids []string) ([]json.RawMessage, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	last, err := json.Marshal(s.request)
	same := strings.Replace(string(last), strings.ToUpper(bookID), bookID, 1)
	return []json.RawMessage{last, json.RawMessage(same)}, errors.Join(err, s.note("ended"))
}

func (s *shelf) LoansInTransit(context.Context, []string) ([]worklist.TransitLoan, error) {
	return []worklist.TransitLoan{{ItemID: strings.ToUpper(bookID)}}, s.note("loans")
}

func (s *shelf) OpenRequests(context.Context, []string) ([]worklist.TransitRequest, error) {
	return []worklist.TransitRequest{{QueuedRequest: s.request}}, s.note("open requests")
}

func (s *shelf) Location(context.Context, string) (library.Location, error) {
	return library.Location{Name: "Main"}, nil
}

func (s *shelf) ServicePoint(_ context.Context, id string) (library.ServicePoint, error) {
	return library.ServicePoint{}, fault.New(fault.NotFound, "no service point %s", id)
}

func TestService_FindsRecordsByIDsInCapitals(t *testing.T) {
	t.Parallel()
	ctx, book, ann := t.Context(), strings.ToUpper(bookID), strings.ToUpper(annID)
	ofItem := schemas.QueuedRequest{ID: "r", ItemID: book, RequesterID: ann, PickupServicePointID: hereID}
	s := worklist.Service{Library: &shelf{request: ofItem}}
	if slips, err := s.PickSlips(ctx, hereID); err != nil || len(slips) != 1 || slips[0].Copy.Item.ID != bookID ||
		slips[0].Copy.Location.Name != "Main" || slips[0].Parts.Requester.ID != annID {
		t.Errorf("pick slips: got %+v, %v", slips, err)
	}
	if cleared, err := s.HoldShelfClearance(ctx, strings.ToUpper(hereID)); err != nil || len(cleared) != 1 {
		t.Errorf("hold shelf: got %s, %v, want the last request of the item", cleared, err)
	}
	if report, total, err := s.ItemsInTransit(ctx); err != nil || total != 1 || report[0].Loan == nil ||
		report[0].Request == nil {
		t.Errorf("in transit: got %+v, %v", report, err)
	}
	s.Library = &shelf{request: ofItem, waiting: []schemas.QueuedRequest{ofItem}}
	if cleared, err := s.HoldShelfClearance(ctx, hereID); err != nil || len(cleared) != 0 {
		t.Errorf("hold shelf: got %s, %v, but the item waits for a patron", cleared, err)
	}
	s.Library = &shelf{request: schemas.QueuedRequest{InstanceID: book}}
	if slips, err := s.SearchSlips(ctx, hereID); err != nil || len(slips) != 1 || slips[0].Copy.Instance.Title != "Emma" {
		t.Errorf("search slips: got %+v, %v", slips, err)
	}
}

func TestService_ListsNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]func(worklist.Service) (any, error){
		"pick slips":   func(s worklist.Service) (any, error) { return s.PickSlips(t.Context(), hereID) },
		"search slips": func(s worklist.Service) (any, error) { return s.SearchSlips(t.Context(), hereID) },
		"hold shelf":   func(s worklist.Service) (any, error) { return s.HoldShelfClearance(t.Context(), hereID) },
		"in transit": func(s worklist.Service) (any, error) {
			report, _, err := s.ItemsInTransit(t.Context())
			return report, err
		},
	} {
		request := schemas.QueuedRequest{ItemID: bookID, RequesterID: annID, PickupServicePointID: hereID}
		works := &shelf{request: request}
		if _, err := list(worklist.Service{Library: works}); err != nil || len(works.calls) < 3 {
			t.Errorf("%s: got %v after %q", name, err, works.calls)
		}
		for _, call := range works.calls {
			fails := &shelf{request: request, fail: call}
			if found, err := list(worklist.Service{Library: fails}); !errors.Is(err, errDown) {
				t.Errorf("%s without %s: got %+v, %v", name, call, found, err)
			}
		}
	}
}
