package storageclient

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

func TestClient_WritesCirculationSettings(t *testing.T) {
	t.Parallel()
	const setting, path = `{"name":"s"}`, "/circulation-settings-storage/circulation-settings"
	var got string
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = r.Method + " " + r.URL.Path + " " + string(body)
		if r.Method == http.MethodPost {
			answer(w, 201, "", setting)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	ctx := inTenant(t, "diku")
	for want, call := range map[string]func() error{
		"POST " + path + " " + setting: func() error {
			stored, err := c.CreateSetting(ctx, json.RawMessage(setting))
			if string(stored) != setting {
				t.Errorf("got %s", stored)
			}
			return err
		},
		"PUT " + path + "/" + someID + " " +
			setting: func() error { return c.ReplaceSetting(ctx, someID, json.RawMessage(setting)) },
		"DELETE " + path + "/" + someID + " ": func() error { return c.DeleteSetting(ctx, someID) },
	} {
		if err := call(); err != nil || got != want {
			t.Errorf("got %v after %q, want %q", err, got, want)
		}
	}
}
