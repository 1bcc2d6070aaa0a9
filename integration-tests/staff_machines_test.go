package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// A machine that staff add signs in with the password that they set last.
func TestStaffMachines_AddAndSetAPassword(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: disableLock()}, 1)
	place := p.readRecord(t, "/service-points/"+p.ServicePointID)["name"].(string)
	login := func(password string) int {
		return callEndpoint(t, p.storageAt(0), http.MethodPost, "/self-check-terminals/verify",
			record{"login": "desk-1", "password": password}).Status
	}
	tab := p.openStaffPage(t, 0)
	tab.Click("Self-check machines")
	tab.See("No machine is known yet.")
	tab.Fill("Login", "desk-1")
	tab.Fill("Name", "Hall")
	tab.Select("Service point", place)
	tab.Fill("Password", "first-secret")
	tab.Click("Add")
	tab.See("The machine was added.", "Hall", "desk-1", place)
	if got := login("first-secret"); got != http.StatusOK {
		t.Errorf("login with the first password: got %d, want 200", got)
	}
	tab.Fill("Login", "DESK-1")
	tab.Fill("Name", "Again")
	tab.Select("Service point", place)
	tab.Fill("Password", "first-secret")
	tab.Click("Add")
	tab.See("Please look at this again", "login value already exists")

	tab.Click("Self-check machines")
	tab.Click("New password")
	tab.See("New password for Hall")
	tab.Fill("Password", "second-secret")
	tab.Click("Set the password")
	tab.See("The new password is set.")
	if first, second := login("first-secret"), login("second-secret"); first != 422 || second != http.StatusOK {
		t.Errorf("login with the first and the second password: got %d and %d, want 422 and 200", first, second)
	}
}
