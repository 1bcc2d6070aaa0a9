package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/requests"
	"checkoutlock/schemas/fault"
)

func (b *backend) Edit(_ context.Context, id string, body []byte) error {
	b.wish = fmt.Sprintf("edit %s %s", id, body)
	return b.err
}

func (b *backend) Delete(_ context.Context, id string) error {
	b.wish = "delete " + id
	return b.err
}

func (b *backend) DeleteRequests(_ context.Context, query string) error {
	b.wish = "delete where " + query
	return b.err
}

func (b *backend) Move(_ context.Context, id string, m requests.MoveRequest) (json.RawMessage, error) {
	b.wish = fmt.Sprintf("move %s %s %s", id, m.DestinationItemID, m.RequestType)
	return json.RawMessage(storedWish), b.err
}

func (b *backend) Reorder(_ context.Context, id string, ofTitle bool, body []byte) ([]json.RawMessage, error) {
	b.wish = fmt.Sprintf("reorder %s %t %s", id, ofTitle, body)
	return []json.RawMessage{json.RawMessage(storedWish)}, b.err
}

func TestRequestChanges(t *testing.T) {
	t.Parallel()
	const path = "/circulation/requests"
	closed := fault.Validation(fault.Refusal("", "The Request has already been closed", fault.Param("id", wishID)))
	tests := map[string]struct {
		method, target, body string
		err                  error
		status               int
		want, asked          string
	}{
		"edited": {
			method: "PUT", target: path + "/" + strings.ToUpper(wishID), body: `{"patronComments":"x"}`, err: nil, status: 204,
			want: "", asked: `edit ` + wishID + ` {"patronComments":"x"}`,
		},
		"closed before": {
			method: "PUT", target: path + "/" + wishID, body: `{}`, err: closed, status: 422,
			want: `{"errors":[{"message":"The Request has already been closed","code":"INVALID","parameters":[{"key":"id",` +
				`"value":"` + wishID + `"}]}]}`,
			asked: "edit " + wishID + " {}",
		},
		"edited, no id": {
			method: "PUT", target: path + "/first", body: `{}`, err: nil, status: 400, want: "must be a UUID", asked: "",
		},
		"edited, no body": {
			method: "PUT", target: path + "/" + wishID, body: ``, err: nil, status: 400, want: "body", asked: "",
		},
		"a property twice": {
			method: "PUT", target: path + "/" + wishID, body: `{"status":"a","status":"b"}`, err: nil, status: 400,
			want: "status", asked: "",
		},
		"deleted": {
			method: "DELETE", target: path + "/" + wishID, body: "", err: nil, status: 204, want: "", asked: "delete " + wishID,
		},
		"deleted, not there": {
			method: "DELETE", target: path + "/" + wishID, body: "", err: errNone, status: 404,
			want: "There is no request with the id " + wishID, asked: "delete " + wishID,
		},
		"deleted by query": {
			method: "DELETE", target: path + "?query=a==b", body: "", err: nil, status: 204, want: "",
			asked: "delete where a==b",
		},
		"deleted without one": {
			method: "DELETE", target: path, body: "", err: fault.New(fault.Malformed, "CQL: the query is missing"), status: 400,
			want: "the query is missing", asked: "delete where ",
		},
		"deleted by two": {
			method: "DELETE", target: path + "?query=a&query=b", body: "", err: nil, status: 400, want: "2 times", asked: "",
		},
		"moved": {
			method: "POST", target: path + "/" + wishID + "/move", body: `{"destinationItemId":"i","requestType":"Hold"}`,
			err: nil, status: 200, want: storedWish, asked: "move " + wishID + " i Hold",
		},
		"moved, not there": {
			method: "POST", target: path + "/" + wishID + "/move", body: `{}`, err: errNone, status: 404, want: "Not found",
			asked: "move " + wishID + "  ",
		},
		"moved, no body": {
			method: "POST", target: path + "/" + wishID + "/move", body: ``, err: nil, status: 400, want: "body", asked: "",
		},
		"moved, no id": {
			method: "POST", target: path + "/first/move", body: `{}`, err: nil, status: 400, want: "must be a UUID", asked: "",
		},
		"an item's queue": {
			method: "POST", target: path + "/queue/item/" + wishID + "/reorder", body: `{}`, err: nil, status: 200,
			want: `{"requests":[` + storedWish + `],"totalRecords":1}`, asked: "reorder " + wishID + " false {}",
		},
		"a title's queue": {
			method: "POST", target: path + "/queue/instance/" + wishID + "/reorder", body: `{}`, err: nil, status: 200,
			want: `"totalRecords":1`, asked: "reorder " + wishID + " true {}",
		},
		"no queue": {
			method: "POST", target: path + "/queue/item/" + wishID + "/reorder", body: `{}`, err: errNone, status: 404,
			want: "Not found", asked: "reorder " + wishID + " false {}",
		},
		"a queue of nothing": {
			method: "POST", target: path + "/queue/item/book/reorder", body: `{}`, err: nil, status: 400, want: "must be a UUID",
			asked: "",
		},
		"changed all the time": {
			method: "DELETE", target: path + "/" + wishID, body: "", err: fault.New(fault.RequestChanged, "read it again"),
			status: 409, want: "read it again", asked: "delete " + wishID,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{err: tt.err}
			status, _, answer := b.send(t, tt.method, tt.target, tt.body)
			if tt.want == "" && answer != "" || status != tt.status ||
				!strings.Contains(strings.NewReplacer("\n", "", ": ", ":").Replace(answer), tt.want) {
				t.Errorf("got %d %s, want %d with %s", status, answer, tt.status, tt.want)
			}
			if b.wish != tt.asked {
				t.Errorf("asked for %q, want %q", b.wish, tt.asked)
			}
		})
	}
}
