package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"checkoutlock/schemas/fault"
)

const settingID = "5f1c2b3a-1ab6-4ac2-afdf-8b2df0434378"

func (b *backend) Settings(_ context.Context, query string, offset, limit int) ([]json.RawMessage, int, error) {
	b.query, b.offset, b.limit = query, offset, limit
	return []json.RawMessage{json.RawMessage(b.setting)}, 1, b.err
}

func (b *backend) Setting(_ context.Context, id string) (json.RawMessage, error) {
	if b.setting == "" || id != settingID {
		return nil, errNone
	}
	return json.RawMessage(b.setting), b.err
}

func (b *backend) CreateSetting(_ context.Context, setting json.RawMessage) (json.RawMessage, error) {
	b.setting = string(setting)
	return json.RawMessage(`{"id":"` + settingID + `","name":"n"}`), b.err
}

func (b *backend) ReplaceSetting(_ context.Context, id string, setting json.RawMessage) error {
	if id != settingID {
		return errNone
	}
	b.setting = string(setting)
	return b.err
}

func (b *backend) DeleteSetting(_ context.Context, id string) error {
	if id != settingID {
		return errNone
	}
	b.setting = ""
	return b.err
}

func TestSettings(t *testing.T) {
	t.Parallel()
	const (
		path, other = "/circulation/settings", "/11111111-1ab6-4ac2-afdf-8b2df0434378"
		sent        = `{"name":"n","value":{"a":1}}`
	)
	b := &backend{}
	for _, tt := range []struct {
		method, path, body string
		status             int
		want, stored       string
	}{
		{method: "POST", path: path, body: sent, status: 201, want: `{"id":"` + settingID + `","name":"n"}`, stored: sent},
		{
			method: "GET", path: path + "?query=name%3D%3Dn&limit=3&offset=2", body: "", status: 200,
			want: `{"circulationSettings":[` + sent + `],"totalRecords":1}`, stored: sent,
		},
		{method: "GET", path: path + "/" + settingID, body: "", status: 200, want: sent, stored: sent},
		{method: "PUT", path: path + "/" + settingID, body: `{"name":"m"}`, status: 204, want: "", stored: `{"name":"m"}`},
		{method: "DELETE", path: path + other, body: "", status: 204, want: "", stored: `{"name":"m"}`},
		{method: "DELETE", path: path + "/" + settingID, body: "", status: 204, want: "", stored: ""},
	} {
		status, header, body := b.send(t, tt.method, tt.path, tt.body)
		if status != tt.status || body != tt.want || b.setting != tt.stored {
			t.Errorf("%s %s: got %d %s, stored %s, want %d %s, stored %s", tt.method, tt.path, status, body, b.setting,
				tt.status, tt.want, tt.stored)
		}
		if tt.method == http.MethodPost && header.Get("Location") != path+"/"+settingID {
			t.Errorf("got Location %s", header.Get("Location"))
		}
	}
	if b.query != "name==n" || b.offset != 2 || b.limit != 3 {
		t.Errorf("asked for %q from %d, %d of them", b.query, b.offset, b.limit)
	}
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{method: "GET", path: path + other, body: "", status: 404},
		{method: "PUT", path: path + other, body: "{}", status: 404},
		{method: "PUT", path: path + "/none", body: "{}", status: 400},
		{method: "DELETE", path: path + "/none", body: "", status: 400},
		{method: "POST", path: path, body: `{"name":"a","name":"b"}`, status: 400},
		{method: "DELETE", path: path, body: "", status: 405},
	} {
		if status, _, body := b.send(t, tt.method, tt.path, tt.body); status != tt.status {
			t.Errorf("%s %s: got %d %s, want %d", tt.method, tt.path, status, body, tt.status)
		}
	}
	b.err = fault.Validation(fault.Refusal("", "name is required"))
	if status, _, _ := b.send(t, "POST", path, "{}"); status != 422 {
		t.Errorf("got %d, want storage's 422", status)
	}
}
