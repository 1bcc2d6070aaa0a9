package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/requests"
	"checkoutlock/schemas/fault"
)

const (
	wishID     = "7ac2a5a3-0a3c-4ff4-8a5f-7c0d3d0ae001"
	storedWish = `{"id":"` + wishID + `","position":1}`
)

func (b *backend) Create(_ context.Context, body []byte) (json.RawMessage, error) {
	b.wish = string(body)
	return json.RawMessage(storedWish), b.err
}

func (b *backend) AllowedPoints(_ context.Context, q requests.AllowedQuestion) (map[string][]requests.AllowedPoint, error) {
	b.question = q
	return map[string][]requests.AllowedPoint{"Hold": {{ID: wishID, Name: "Desk"}}}, b.err
}

func (b *backend) Request(_ context.Context, id string) (json.RawMessage, error) {
	if id != wishID {
		return nil, errNone
	}
	return json.RawMessage(storedWish), b.err
}

func (b *backend) Requests(_ context.Context, query string, offset, limit int) ([]json.RawMessage, int, error) {
	b.query, b.offset, b.limit = query, offset, limit
	return b.page(storedWish, limit), 17, b.err
}

func (b *backend) ItemQueue(_ context.Context, itemID string) ([]json.RawMessage, error) {
	if itemID != wishID {
		return nil, b.err
	}
	return []json.RawMessage{json.RawMessage(storedWish)}, b.err
}

func (b *backend) TitleQueue(context.Context, string) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(storedWish), json.RawMessage(storedWish)}, b.err
}

func TestRequests(t *testing.T) {
	t.Parallel()
	const path = "/circulation/requests"
	tests := map[string]struct {
		method, target, body string
		err                  error
		status               int
		want                 string
	}{
		"placed":                 {"POST", path, `{"requestType":"Hold"}`, nil, 201, storedWish},
		"refused":                {"POST", path, `{}`, fault.Validation(fault.Detail{Message: "no item ID"}), 422, `"no item ID"`},
		"changed all the time":   {"POST", path, `{}`, fault.New(fault.RequestChanged, "read the queue again"), 409, "read the queue again"},
		"no body":                {"POST", path, "", nil, 400, "body"},
		"one":                    {"GET", path + "/" + wishID, "", nil, 200, storedWish},
		"one that is not there":  {"GET", path + "/" + loanID, "", nil, 404, "There is no request with the id " + loanID},
		"one without an id":      {"GET", path + "/first", "", nil, 400, "must be a UUID"},
		"a page":                 {"GET", path + "?query=a&offset=3&limit=2", "", nil, 200, `{"requests":[` + storedWish + `],"totalRecords":17}`},
		"a page of too few":      {"GET", path + "?limit=-1", "", nil, 400, "limit"},
		"an item's queue":        {"GET", path + "/queue/item/" + wishID, "", nil, 200, `{"requests":[` + storedWish + `],"totalRecords":1}`},
		"in upper case":          {"GET", path + "/queue/item/" + strings.ToUpper(wishID), "", nil, 200, `{"requests":[` + storedWish + `],"totalRecords":1}`},
		"an empty queue":         {"GET", path + "/queue/item/" + loanID, "", nil, 200, `{"requests":[],"totalRecords":0}`},
		"a queue of nothing":     {"GET", path + "/queue/item/book", "", nil, 400, "must be a UUID"},
		"a title's queue":        {"GET", path + "/queue/instance/" + wishID, "", nil, 200, `"totalRecords":2`},
		"a queue, storage fails": {"GET", path + "/queue/item/" + wishID, "", fault.New(fault.Unavailable, "Storage was not reached"), 503, "Storage was not reached"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{err: tt.err}
			status, header, body := b.send(t, tt.method, tt.target, tt.body)
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s, want %d with %s", status, body, tt.status, tt.want)
			}
			if location := header.Get("Location"); status == http.StatusCreated && (location != path+"/"+wishID || b.wish != tt.body) {
				t.Errorf("Location is %q, asked for %s", location, b.wish)
			}
			if strings.Contains(tt.target, "?query") && (b.query != "a" || b.offset != 3 || b.limit != 2) {
				t.Errorf("asked for %q, %d, %d", b.query, b.offset, b.limit)
			}
		})
	}
}

func TestAllowedServicePoints(t *testing.T) {
	t.Parallel()
	const path = "/circulation/requests/allowed-service-points?useStubItem=false&operation=move&requesterId=a&patronGroupId=b&instanceId=c&itemId=d&requestId=e"
	b := &backend{}
	want := requests.AllowedQuestion{Operation: "move", RequesterID: "a", PatronGroupID: "b", InstanceID: "c", ItemID: "d", RequestID: "e"}
	if status, _, body := b.send(t, "GET", path, ""); status != 200 || strings.TrimSpace(body) != `{"Hold":[{"id":"`+wishID+`","name":"Desk"}]}` || b.question != want {
		t.Errorf("got %d %s, asked %+v", status, body, b.question)
	}
}
