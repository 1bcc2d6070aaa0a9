package integration_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
)

const printPath = "/circulation/print-events-entry"

// newPrint returns a print of a request's slip, and switches such prints on.
func (p *pair) newPrint(t *testing.T) record {
	t.Helper()
	p.addRecord(t, "/circulation-settings-storage/circulation-settings",
		record{"name": "printEventLogFeature", "value": record{"enablePrintLog": true}})
	return record{
		"requestIds": []any{p.addRecord(t, "/request-storage/requests", newRequest())}, "requesterId": uuid.NewString(),
		"requesterName": "Ada", "printEventDate": "2026-03-01T10:00:00Z",
	}
}

func TestPrints(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	request := p.addRecord(t, "/request-storage/requests", newRequest())
	body := record{
		"requestIds": []any{request}, "requesterId": uuid.NewString(), "requesterName": "Ada",
		"printEventDate": "2026-03-01T10:00:00Z",
	}
	send := func(body record, status int, want string) {
		t.Helper()
		a := callEndpoint(t, p.machines[0], http.MethodPost, printPath, body)
		if status == http.StatusNoContent {
			if a.Status != status {
				t.Errorf("got %d %s, want %d", a.Status, a.Body, status)
			}
			return
		}
		errors, _ := readObject(t, a, status)["errors"].([]any)
		if len(errors) == 0 || errors[0].(map[string]any)["message"] != want {
			t.Errorf("got %v, want %q", errors, want)
		}
	}
	send(body, http.StatusUnprocessableEntity, "No configuration found for print event feature")
	const settings = "/circulation-settings-storage/circulation-settings"
	p.addRecord(t, settings, record{"name": "printEventLogFeature", "value": record{"enablePrintLog": false}})
	send(body, http.StatusUnprocessableEntity, "print event feature is disabled for this tenant")
	p.addRecord(t, settings, record{"name": "printEventLogFeature", "value": record{"enablePrintLog": "true"}})
	body["requestIds"] = []any{request, uuid.NewString()}
	send(body, http.StatusUnprocessableEntity, "invalid request found")
	body["requestIds"] = []any{request}
	if got := p.readRecord(t, "/request-storage/requests/"+request)["printDetails"]; got != nil {
		t.Errorf("got %v after refusals only", got)
	}
	send(body, http.StatusNoContent, "")
	send(body, http.StatusNoContent, "")
	details, _ := p.readRecord(t, "/request-storage/requests/"+request)["printDetails"].(map[string]any)
	if got := fmt.Sprint(details["printCount"], details["isPrinted"]); got != "2 true" {
		t.Errorf("got %s, want two prints", got)
	}
}
