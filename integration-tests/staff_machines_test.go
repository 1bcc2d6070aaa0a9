package integration_test

import (
	"net/http"
	"strings"
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
	tab.See("Please look at this again", "Another machine has the login DESK-1.")

	tab.Click("Self-check machines")
	tab.Click("New password for Hall")
	tab.See("New password for Hall")
	tab.Fill("Password", "second-secret")
	tab.Click("Set the password")
	tab.See("The new password is set.")
	if first, second := login("first-secret"), login("second-secret"); first != 422 || second != http.StatusOK {
		t.Errorf("login with the first and the second password: got %d and %d, want 422 and 200", first, second)
	}
}

// What machines do at any instance is on the page of another one, and so are the notes for staff.
func TestStaffMachines_ShowWhatTheyDo(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableSIP2()}, 1)
	p.addTerminal(t)
	_, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	m := p.newMachine(t, p.Machines[1])
	if got := m.ask(newSIPCheckOut(patron, books[0])); !strings.HasPrefix(got, "121") {
		t.Fatalf("got %s", got)
	}
	offLine := "11NY" + strings.TrimPrefix(newSIPCheckOut(patron, books[1]), "11NN")
	if got := m.ask(offLine); !strings.HasPrefix(got, "120") {
		t.Fatalf("got %s", got)
	}
	tab := p.openStaffPage(t, 0)
	waitUntil(t, patience, "the page shows the machine", func() bool {
		tab.Click("Self-check machines")
		text := tab.Text("main")
		return strings.Contains(text, "from 127.0.0.1") && strings.Contains(text, "Taken off-line, not lent")
	})
	tab.See("Hall", "check-out", "1 lent or renewed", "1 refused", books[1], "Patrons are masked.")
	tab.CheckAxe()
	if got := tab.Style("#notes", "margin-top"); got == "0px" {
		t.Error("the heading touches the table above it")
	}
	tab.Click("Show the patrons")
	tab.See(patron)

	tab.Click("Edit Hall")
	tab.CheckAxe()
	tab.Fill("Name", "Cellar")
	tab.Select("May sign in", "no, it is disabled")
	tab.Click("Save")
	tab.See("The machine is changed.", "Cellar", "no, it is disabled")
	waitUntil(t, patience, "the machine is cut off", func() bool {
		answer, err := m.exchange("9900402.00")
		return err != nil || !strings.Contains(answer, "ANHall") && !strings.Contains(answer, "ANCellar")
	})
}
