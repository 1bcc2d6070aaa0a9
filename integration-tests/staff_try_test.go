package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

func TestStaffTry(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	rule := "Line 3 of the circulation rules, about material type: m " + p.MaterialTypeID + ": " + "l " + p.PolicyID
	try := func(tab *browser.Page, item, patron string) {
		t.Helper()
		tab.Fill("Item's barcode", item)
		tab.Fill("Patron's barcode", patron)
		tab.Click("Try")
	}

	tab := p.openStaffPage(t, 0)
	tab.Click("Try a check-out")
	try(tab, books[0], patron)
	tab.See("Would be lent, due ")
	tab.See("Patron Reader, " + patron + ", group readers")
	tab.See("Item A Book of Many Copies Status: Available Type: book Location: Main")
	tab.See(rule)
	tab.See("Loan policy Limited")
	tab.See("Loan limit 0 of 1 loans")
	tab.Gone("the limit is reached")
	if got := p.readState(t, userID, books[0]); got != untouched {
		t.Errorf("the try left %+v", got)
	}

	if a := p.lendBook(t, 0, books[0], patron); a.Status != http.StatusCreated {
		t.Fatalf("lending: %d %s", a.Status, a.Body)
	}
	try(tab, books[1], patron)
	tab.See("Would be refused")
	refused := tab.In("Would be refused")
	refused.See("Patron has reached maximum limit of 1 items for material type (code ITEM_LIMIT_MATERIAL_TYPE)")
	refused.See("Loan limit 1 of 1 loans, the limit is reached")
	refused.See(rule)
	try(tab, books[0], patron)
	refused.See("Status: Checked out")
	try(tab, books[1], "P-unknown")
	refused.See("Could not find user with matching barcode (code USER_BARCODE_NOT_FOUND) Patron not found")
	refused.See("Loan policy not asked")
	refused.Gone("the limit is reached")

	tab.Fill("Item's barcode", " ")
	tab.Click("Try")
	if item := tab.FindField("Item's barcode"); !item.Invalid || tab.Status() != http.StatusUnprocessableEntity {
		t.Errorf("without an item the page has status %d and the field %+v", tab.Status(), item)
	}
	lent := state{Loans: 1, History: 1, Status: "Available", Version: 1, Sessions: 1}
	if got := p.readState(t, userID, books[1]); got != lent {
		t.Errorf("the try left %+v", got)
	}
}
