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

func (b *backend) DeleteMatching(_ context.Context, query string) error {
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
		"edited":               {"PUT", path + "/" + strings.ToUpper(wishID), `{"patronComments":"x"}`, nil, 204, "", `edit ` + wishID + ` {"patronComments":"x"}`},
		"closed before":        {"PUT", path + "/" + wishID, `{}`, closed, 422, `{"errors":[{"message":"The Request has already been closed","code":"INVALID","parameters":[{"key":"id","value":"` + wishID + `"}]}]}`, "edit " + wishID + " {}"},
		"edited, no id":        {"PUT", path + "/first", `{}`, nil, 400, "must be a UUID", ""},
		"edited, no body":      {"PUT", path + "/" + wishID, ``, nil, 400, "body", ""},
		"a property twice":     {"PUT", path + "/" + wishID, `{"status":"a","status":"b"}`, nil, 400, "status", ""},
		"deleted":              {"DELETE", path + "/" + wishID, "", nil, 204, "", "delete " + wishID},
		"deleted, not there":   {"DELETE", path + "/" + wishID, "", errNone, 404, "There is no request with the id " + wishID, "delete " + wishID},
		"deleted by query":     {"DELETE", path + "?query=a==b", "", nil, 204, "", "delete where a==b"},
		"deleted without one":  {"DELETE", path, "", fault.New(fault.Malformed, "CQL: the query is missing"), 400, "the query is missing", "delete where "},
		"deleted by two":       {"DELETE", path + "?query=a&query=b", "", nil, 400, "2 times", ""},
		"moved":                {"POST", path + "/" + wishID + "/move", `{"destinationItemId":"i","requestType":"Hold"}`, nil, 200, storedWish, "move " + wishID + " i Hold"},
		"moved, not there":     {"POST", path + "/" + wishID + "/move", `{}`, errNone, 404, "Not found", "move " + wishID + "  "},
		"moved, no body":       {"POST", path + "/" + wishID + "/move", ``, nil, 400, "body", ""},
		"moved, no id":         {"POST", path + "/first/move", `{}`, nil, 400, "must be a UUID", ""},
		"an item's queue":      {"POST", path + "/queue/item/" + wishID + "/reorder", `{}`, nil, 200, `{"requests":[` + storedWish + `],"totalRecords":1}`, "reorder " + wishID + " false {}"},
		"a title's queue":      {"POST", path + "/queue/instance/" + wishID + "/reorder", `{}`, nil, 200, `"totalRecords":1`, "reorder " + wishID + " true {}"},
		"no queue":             {"POST", path + "/queue/item/" + wishID + "/reorder", `{}`, errNone, 404, "Not found", "reorder " + wishID + " false {}"},
		"a queue of nothing":   {"POST", path + "/queue/item/book/reorder", `{}`, nil, 400, "must be a UUID", ""},
		"changed all the time": {"DELETE", path + "/" + wishID, "", fault.New(fault.RequestChanged, "read it again"), 409, "read it again", "delete " + wishID},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{err: tt.err}
			status, _, answer := b.send(t, tt.method, tt.target, tt.body)
			if tt.want == "" && answer != "" || status != tt.status || !strings.Contains(strings.NewReplacer("\n", "", ": ", ":").Replace(answer), tt.want) {
				t.Errorf("got %d %s, want %d with %s", status, answer, tt.status, tt.want)
			}
			if b.wish != tt.asked {
				t.Errorf("asked for %q, want %q", b.wish, tt.asked)
			}
		})
	}
}
