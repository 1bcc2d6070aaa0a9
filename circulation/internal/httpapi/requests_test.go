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

func (b *backend) AllowedPoints(_ context.Context, q requests.AllowedQuestion) (map[string][]requests.AllowedPoint,
	error,
) {
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
		"placed": {
			method: "POST", target: path, body: `{"requestType":"Hold"}`, err: nil, status: 201, want: storedWish,
		},
		"refused": {
			method: "POST", target: path, body: `{}`, err: fault.Validation(fault.Detail{Message: "no item ID"}), status: 422,
			want: `"no item ID"`,
		},
		"changed all the time": {
			method: "POST", target: path, body: `{}`, err: fault.New(fault.RequestChanged, "read the queue again"), status: 409,
			want: "read the queue again",
		},
		"no body": {method: "POST", target: path, body: "", err: nil, status: 400, want: "body"},
		"one": {
			method: "GET", target: path + "/" + wishID, body: "", err: nil, status: 200, want: storedWish,
		},
		"one that is not there": {
			method: "GET", target: path + "/" + loanID, body: "", err: nil, status: 404,
			want: "There is no request with the id " + loanID,
		},
		"one without an id": {
			method: "GET", target: path + "/first", body: "", err: nil, status: 400, want: "must be a UUID",
		},
		"a page": {
			method: "GET", target: path + "?query=a&offset=3&limit=2", body: "", err: nil, status: 200,
			want: `{"requests":[` + storedWish + `],"totalRecords":17}`,
		},
		"a page of too few": {method: "GET", target: path + "?limit=-1", body: "", err: nil, status: 400, want: "limit"},
		"an item's queue": {
			method: "GET", target: path + "/queue/item/" + wishID, body: "", err: nil, status: 200,
			want: `{"requests":[` + storedWish + `],"totalRecords":1}`,
		},
		"in upper case": {
			method: "GET", target: path + "/queue/item/" + strings.ToUpper(wishID), body: "", err: nil, status: 200,
			want: `{"requests":[` + storedWish + `],"totalRecords":1}`,
		},
		"an empty queue": {
			method: "GET", target: path + "/queue/item/" + loanID, body: "", err: nil, status: 200,
			want: `{"requests":[],"totalRecords":0}`,
		},
		"a queue of nothing": {
			method: "GET", target: path + "/queue/item/book", body: "", err: nil, status: 400, want: "must be a UUID",
		},
		"a title's queue": {
			method: "GET", target: path + "/queue/instance/" + wishID, body: "", err: nil, status: 200, want: `"totalRecords":2`,
		},
		"a queue, storage fails": {
			method: "GET", target: path + "/queue/item/" + wishID, body: "",
			err: fault.New(fault.Unavailable, "Storage was not reached"), status: 503, want: "Storage was not reached",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{err: tt.err}
			status, header, body := b.send(t, tt.method, tt.target, tt.body)
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s, want %d with %s", status, body, tt.status, tt.want)
			}
			if location := header.Get("Location"); status == http.StatusCreated &&
				(location != path+"/"+wishID || b.wish != tt.body) {
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
	const path = "/circulation/requests/allowed-service-points?useStubItem=false&operation=move&requesterId=a" +
		"&patronGroupId=b&instanceId=c&itemId=d&requestId=e"
	b := &backend{}
	want := requests.AllowedQuestion{
		Operation: "move", RequesterID: "a", PatronGroupID: "b", InstanceID: "c", ItemID: "d", RequestID: "e",
	}
	if status, _, body := b.send(t, "GET", path, ""); status != 200 ||
		strings.TrimSpace(body) != `{"Hold":[{"id":"`+wishID+`","name":"Desk"}]}` || b.question != want {
		t.Errorf("got %d %s, asked %+v", status, body, b.question)
	}
}
