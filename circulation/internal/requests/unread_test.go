package requests_test

import (
	"errors"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/requests"
)

// What cannot be read is neither judged as missing nor written.
func TestRequests_FailIfAnythingCannotBeRead(t *testing.T) {
	t.Parallel()
	place := func(replace map[string]any) func(*requests.Service) error {
		return func(s *requests.Service) error { _, err := s.Create(t.Context(), body(t, replace)); return err }
	}
	allow := func(operation, item, title, request string) func(*requests.Service) error {
		q := requests.AllowedQuestion{Operation: operation, ItemID: item, InstanceID: title, RequestID: request}
		if operation == "create" {
			q.RequesterID = benID
		}
		return func(s *requests.Service) error { _, err := s.AllowedPoints(t.Context(), q); return err }
	}
	for name, tt := range map[string]struct {
		library func() *fakeLibrary
		do      func(*requests.Service) error
	}{
		"recall":       {library: newLibrary, do: place(map[string]any{"requestType": "Recall", "proxyUserId": benID})},
		"recall title": {library: newTitle, do: place(forTitle("Recall"))},
		"no title":     {library: newLibrary, do: place(map[string]any{"requestLevel": nil, "instanceId": nil})},
		"edit": {library: newStored, do: func(s *requests.Service) error {
			return s.Edit(t.Context(), wishID, body(t, nil))
		}},
		"delete": {library: newStored, do: func(s *requests.Service) error { return s.Delete(t.Context(), wishID) }},
		"move": {library: newMovable, do: func(s *requests.Service) error {
			_, err := s.Move(t.Context(), wishID, requests.MoveRequest{DestinationItemID: bookID, RequestType: "Recall"})
			return err
		}},
		"order": {library: newLibrary, do: func(s *requests.Service) error {
			_, err := s.Reorder(t.Context(), bookID, false, []byte(`{"reorderedQueue":[]}`))
			return err
		}},
		"places of an item":   {newLibrary, allow("create", bookID, "", "")},
		"places of an edit":   {newStored, allow("replace", "", "", wishID)},
		"places of no copies": {newLibrary, allow("create", "", titleID, "")},
	} {
		for n := int64(1); ; n++ {
			l, k := tt.library(), &fakeKeeper{}
			l.FailAt, l.proxyRelations = n, []library.ProxyRelation{{Status: "Active"}}
			err := tt.do(k.service(l))
			if l.Reads() < n {
				if err != nil {
					t.Errorf("%s: got %v", name, err)
				}
				break
			}
			if !errors.Is(err, librarytest.ErrUnread) || len(l.placed)+len(k.changes)+len(k.moves)+len(k.order.ID) != 0 {
				t.Errorf("%s, read %d: got %v, placed %v, changed %v, %v, %v", name, n, err, l.placed, k.changes, k.moves, k.order)
			}
		}
	}
}
