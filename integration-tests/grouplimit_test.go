package integration_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// mod-patron-blocks' ids of conditions, which are the same in every tenant.
const (
	chargedOutID   = "3d7c52dc-c732-4223-8bf8-e5917801386f"
	overdueItemsID = "584fbd4f-6a34-4730-a6ca-73a6a6a9d845"
)

const conditionsPath, limitsPath = "/patron-block-conditions", "/patron-block-limits"

// limitGroup stores a condition that blocks borrowing and renewals, and a limit of the library's
// patron group for it.
func (p *pair) limitGroup(t *testing.T, conditionID, message string, value int) {
	t.Helper()
	condition := record{
		"id": conditionID, "name": message, "message": message, "blockBorrowing": true, "blockRenewals": true,
	}
	if _, err := p.Storage.Must(t.Context(), http.MethodPost, conditionsPath, condition); err != nil {
		t.Fatal(err)
	}
	p.addRecord(t, limitsPath, record{"patronGroupId": p.GroupID, "conditionId": conditionID, "value": value})
}

// listBlocks returns the messages of the patron's automated blocks.
func (p *pair) listBlocks(t *testing.T, userID string) []string {
	t.Helper()
	list, _ := p.readRecord(t, "/automated-patron-blocks/"+userID)["automatedPatronBlocks"].([]any)
	var messages []string
	for _, b := range list {
		block, _ := b.(map[string]any)
		message, _ := block["message"].(string)
		messages = append(messages, message)
	}
	return messages
}

// One patron, two circulations and two storages: the limit of the patron's group holds, and no
// item limit helps, because the patron borrows books and maps.
func TestGroupLimit_HoldsForTenCheckOutsAtOnce(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Storages: 2, Circulations: 2, CirculationEnv: enableLock()}, 9)
	p.limitGroup(t, chargedOutID, "Too many loans", 5)
	maps := p.addMaterialType(t, "map")
	for range 4 {
		id, patron := p.addPatron(t)
		books := p.addBooks(t, 5)
		for range 5 {
			_, barcode := p.addItem(t, record{"materialTypeId": maps})
			books = append(books, barcode)
		}
		all := make([]stack.CheckOut, len(books))
		for i, book := range books {
			all[i] = p.newCheckOut(book, patron)
		}
		for _, o := range stack.SendBurst(t.Context(), p.machines, all) {
			if o.Err != nil || o.Status != http.StatusCreated &&
				!strings.Contains(string(o.Body), `"message":"Too many loans","code":"USER_IS_BLOCKED_AUTOMATICALLY"`) {
				t.Errorf("got %d %s %v, want a loan or the block", o.Status, o.Body, o.Err)
			}
		}
		if n := p.countOpenLoans(t, id); n != 5 {
			t.Errorf("the patron has %d loans, want 5", n)
		}
		if got := p.listBlocks(t, id); !slices.Equal(got, []string{"Too many loans"}) {
			t.Errorf("got blocks %q", got)
		}
	}
	p.checkNoLocks(t)
}

func TestGroupLimit_OfOverdueItems(t *testing.T) {
	t.Parallel()
	for name, environ := range map[string][]string{"with the lock": enableLock(), "without the lock": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPair(t, stack.Options{CirculationEnv: environ}, 9)
			p.limitGroup(t, overdueItemsID, "Overdue items", 0)
			id, patron := p.addPatron(t)
			books := p.addBooks(t, 2)
			if got := p.listBlocks(t, id); got != nil {
				t.Errorf("a patron without loans has the blocks %q", got)
			}
			loan := readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)
			loanID, _ := loan["id"].(string)
			path := "/loan-storage/loans/" + loanID
			late := setFields(p.readRecord(t, path), record{"dueDate": "2026-03-01T10:00:00Z"})
			if _, err := p.Storage.Must(t.Context(), http.MethodPut, path, late); err != nil {
				t.Fatal(err)
			}
			refused := readRefusals(t, p.lendBook(t, 0, books[1], patron), http.StatusUnprocessableEntity)
			if got := joinMessages(refused); got != "Overdue items [USER_IS_BLOCKED_AUTOMATICALLY]" {
				t.Errorf("got %q", got)
			}
			if got := p.listBlocks(t, id); !slices.Equal(got, []string{"Overdue items"}) {
				t.Errorf("got blocks %q", got)
			}
			if n := p.countOpenLoans(t, id); n != 1 {
				t.Errorf("the patron has %d loans, want 1", n)
			}
		})
	}
}
