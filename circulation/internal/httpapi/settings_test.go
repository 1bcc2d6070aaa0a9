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
		{"POST", path, sent, 201, `{"id":"` + settingID + `","name":"n"}`, sent},
		{"GET", path + "?query=name%3D%3Dn&limit=3&offset=2", "", 200, `{"circulationSettings":[` + sent + `],"totalRecords":1}`, sent},
		{"GET", path + "/" + settingID, "", 200, sent, sent},
		{"PUT", path + "/" + settingID, `{"name":"m"}`, 204, "", `{"name":"m"}`},
		{"DELETE", path + other, "", 204, "", `{"name":"m"}`},
		{"DELETE", path + "/" + settingID, "", 204, "", ""},
	} {
		status, header, body := b.send(t, tt.method, tt.path, tt.body)
		if status != tt.status || body != tt.want || b.setting != tt.stored {
			t.Errorf("%s %s: got %d %s, stored %s, want %d %s, stored %s", tt.method, tt.path, status, body, b.setting, tt.status, tt.want, tt.stored)
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
		{"GET", path + other, "", 404},
		{"PUT", path + other, "{}", 404},
		{"PUT", path + "/none", "{}", 400},
		{"DELETE", path + "/none", "", 400},
		{"POST", path, `{"name":"a","name":"b"}`, 400},
		{"DELETE", path, "", 405},
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
