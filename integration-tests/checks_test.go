package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// sendCheckOut sends a check-out with more properties by a member of staff with these
// permissions.
func (p *pair) sendCheckOut(t *testing.T, book, patron string, more record, permissions ...string) stack.Answer {
	t.Helper()
	desk := p.machines[0]
	if len(permissions) > 0 {
		desk.Header = p.signIn(uuid.NewString(), permissions...)
	}
	body := setFields(record{"itemBarcode": book, "userBarcode": patron, "servicePointId": p.ServicePointID}, more)
	return callEndpoint(t, desk, http.MethodPost, checkOutPath, body)
}

// lendAs sends a check-out that must succeed and returns the loan.
func (p *pair) lendAs(t *testing.T, book, patron string, more record, permissions ...string) record {
	t.Helper()
	return readObject(t, p.sendCheckOut(t, book, patron, more, permissions...), http.StatusCreated)
}

// addRequest stores an open request for the item and returns its id.
func (p *pair) addRequest(t *testing.T, itemID, requesterID string, position int, more ...record) string {
	t.Helper()
	return p.addRecord(t, "/request-storage/requests", setFields(record{
		"requestLevel": "Item", "requestType": "Hold", "requestDate": "2026-03-01T10:00:00Z",
		"fulfillmentPreference": "Hold Shelf",
		"pickupServicePointId":  p.ServicePointID, "status": "Open - Not yet filled", "requesterId": requesterID,
		"itemId":           itemID,
		"holdingsRecordId": p.HoldingsID, "position": position,
		"instanceId": p.readInstanceID(t),
	}, more...))
}

// addSchedule stores a schedule of one range and returns its id.
func (p *pair) addSchedule(t *testing.T, name, from, to, due string) string {
	t.Helper()
	return p.addRecord(t, "/fixed-due-date-schedule-storage/fixed-due-date-schedules", record{
		"name": name, "schedules": []record{{"from": from, "to": to, "due": due}},
	})
}

// addTermPolicy stores a policy with a fixed due date in the year 3000 and a limit of 1.
func (p *pair) addTermPolicy(t *testing.T) string {
	t.Helper()
	term := p.addSchedule(t, "For ever", "2020-01-01T00:00:00Z", "2999-12-31T00:00:00Z", "3000-01-31T00:00:00Z")
	return p.addLoanPolicy(t, "Term", record{
		"profileId": "Fixed", "period": nil, "fixedDueDateScheduleId": term, "itemLimit": 1,
	})
}

func TestCheckOut_BlockedPatron(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	id, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	p.addRecord(t, "/manualblocks", record{"userId": id, "desc": "owes two books", "borrowing": true})
	p.addRecord(t, "/manualblocks", record{
		"userId": id, "desc": "over", "borrowing": true, "expirationDate": "2020-01-01T00:00:00Z",
	})
	p.storeAutomatedBlocks(t, id, record{
		"blockBorrowing": true, "message": "Five books are overdue",
	}, record{"message": "unused"})
	lift := record{"overrideBlocks": record{"patronBlock": record{}, "comment": "talked to them"}}
	const permission = "circulation.override-patron-block.post"
	blocked := "Patron blocked from borrowing [USER_IS_BLOCKED_MANUALLY]\nFive books are overdue " +
		"[USER_IS_BLOCKED_AUTOMATICALLY]"
	if got := joinMessages(readRefusals(t, p.sendCheckOut(t, book, patron, nil),
		http.StatusUnprocessableEntity)); got != blocked {
		t.Errorf("got\n%s\nwant\n%s", got, blocked)
	}
	denied := readRefusals(t, p.sendCheckOut(t, book, patron, lift, "some.other.permission"),
		http.StatusUnprocessableEntity)
	if len(denied) != 1 || denied[0].Code != "INSUFFICIENT_OVERRIDE_PERMISSIONS" ||
		denied[0].OverridableBlock.MissingPermissions[0] != permission {
		t.Errorf("got %+v", denied)
	}
	checkParts(t, "loan", p.lendAs(t, book, patron, lift, permission), record{
		"action": "checkedOutThroughOverride", "actionComment": "talked to them", "userId": id,
	})
}

func TestCheckOut_ByProxy(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	sponsor, sponsorCard := p.addPatron(t)
	proxy, proxyCard := p.addPatron(t)
	books := p.addBooks(t, 3)
	through := record{"proxyUserBarcode": proxyCard}
	const noRelation = "Cannot check out item via proxy when relationship is invalid [PROXY_RELATIONSHIP_INVALID]"
	if got := joinMessages(readRefusals(t, p.sendCheckOut(t, books[0], sponsorCard, through),
		http.StatusUnprocessableEntity)); got != noRelation {
		t.Errorf("got %s, want %s", got, noRelation)
	}
	p.addRecord(t, "/proxiesfor", record{"userId": sponsor, "proxyUserId": proxy, "status": "Active"})
	checkParts(t, "loan", p.lendAs(t, books[0], sponsorCard, through), record{"userId": sponsor, "proxyUserId": proxy})
	if got := joinMessages(readRefusals(t, p.sendCheckOut(t, books[1], sponsorCard, through),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "maximum limit of 1") {
		t.Errorf("got %s, want the sponsor's limit", got)
	}
	readObject(t, p.lendBook(t, 0, books[2], proxyCard), http.StatusCreated) // the loan above does not count for the proxy
	p.checkNoLocks(t)
}

func TestCheckOut_FillsARequest(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	ann, annCard := p.addPatron(t)
	ben, benCard := p.addPatron(t)
	itemID, book := p.addItem(t)
	first, second := p.addRequest(t, itemID, ann, 1), p.addRequest(t, itemID, ben, 2)
	got := joinMessages(readRefusals(t, p.sendCheckOut(t, book, benCard, nil), http.StatusUnprocessableEntity))
	if !strings.Contains(got, "because it has been requested by another patron") {
		t.Errorf("got %s", got)
	}
	p.lendAs(t, book, annCard, nil)
	checkParts(t, "Ann's request", p.readRecord(t, "/request-storage/requests/"+first), record{
		"status": "Closed - Filled", "position": nil,
	})
	checkParts(t, "Ben's request", p.readRecord(t, "/request-storage/requests/"+second), record{
		"status": "Open - Not yet filled", "position": 1.0,
	})
}

func TestCheckOut_TitleLevelRequests(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 5)
	ann, annCard := p.addPatron(t)
	_, benCard := p.addPatron(t)
	books := p.addBooks(t, 3)
	wanted := p.addRequest(t, "", ann, 1, record{"requestLevel": "Title", "itemId": nil, "holdingsRecordId": nil})
	p.lendAs(t, books[0], benCard, nil) // the request does not count while the setting is off
	p.addRecord(t, "/circulation-settings-storage/circulation-settings", record{
		"name": "generalTlr", "value": record{"titleLevelRequestsFeatureEnabled": true},
	})
	waitUntil(t, patience, "the setting is in force", func() bool {
		a := p.sendCheckOut(t, books[1], benCard, record{"servicePointId": "none"}) // lends nothing
		return strings.Contains(joinMessages(readRefusals(t, a, http.StatusUnprocessableEntity)), "another patron")
	})
	p.lendAs(t, books[2], annCard, nil)
	checkParts(t, "Ann's request", p.readRecord(t, "/request-storage/requests/"+wanted), record{
		"status": "Closed - Filled", "position": nil,
	})
	p.lendAs(t, books[1], benCard, nil)
}

func TestCheckOut_DueDates(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	id, patron := p.addPatron(t)
	other, _ := p.addPatron(t)
	const lent = "2026-03-01T10:00:00.000Z"
	term := p.addSchedule(t, "Terms", "2026-01-01T00:00:00Z", "2026-06-30T23:59:59Z", "2026-07-15T22:00:00Z")
	fixed := p.addLoanPolicy(t, "Term", record{"profileId": "Fixed", "period": nil, "fixedDueDateScheduleId": term})
	limited := p.addLoanPolicy(t, "Year, limited", record{
		"period": record{"duration": 12, "intervalId": "Months"}, "fixedDueDateScheduleId": term,
	})
	wanted := p.addLoanPolicy(t, "Shorter while wanted", nil, record{"requestManagement": record{
		"holds": record{"alternateCheckoutLoanPeriod": record{"duration": 2, "intervalId": "Days"}},
	}})
	never := p.addLoanPolicy(t, "Not for loan", nil, record{"loanable": false, "loansPolicy": nil})

	tests := map[string]struct {
		more  record // of the check-out
		queue bool   // the patron's request and another patron's hold exist
		want  record // of the loan
	}{
		"fixed": {
			more: record{"forceLoanPolicyId": fixed},
			want: record{"dueDate": "2026-07-15T22:00:00.000Z", "loanPolicyId": fixed, "loanPolicy.name": "Term"},
		},
		"limited":    {more: record{"forceLoanPolicyId": limited}, want: record{"dueDate": "2026-07-15T22:00:00.000Z"}},
		"no request": {more: record{"forceLoanPolicyId": wanted}, want: record{"dueDate": "2026-03-29T10:00:00.000Z"}},
		"a waiting hold": {
			more: record{"forceLoanPolicyId": wanted}, queue: true, want: record{"dueDate": "2026-03-03T10:00:00.000Z"},
		},
		"chosen by staff": {
			more: record{"forceLoanPolicyId": never, "overrideBlocks": record{
				"itemNotLoanableBlock": record{"dueDate": "2026-03-02T12:00:00Z"}, "comment": "exhibition",
			}},
			want: record{"dueDate": "2026-03-02T12:00:00.000Z", "actionComment": "exhibition"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			itemID, book := p.addItem(t)
			if tt.queue {
				p.addRequest(t, itemID, id, 1)
				p.addRequest(t, itemID, other, 2)
			}
			loan := p.lendAs(t, book, patron, setFields(tt.more, record{"loanDate": lent}), mayLend, mayLimit)
			checkParts(t, "loan", loan, tt.want)
		})
	}
	late := p.sendCheckOut(t, p.addBooks(t, 1)[0], patron, record{
		"forceLoanPolicyId": fixed, "loanDate": "2026-07-01T00:00:00Z",
	}, mayLimit)
	const noDueDate = "loan date falls outside of the date ranges in the loan policy [NO_DUE_DATE]"
	if got := joinMessages(readRefusals(t, late, http.StatusUnprocessableEntity)); got != noDueDate {
		t.Errorf("got %s, want %s", got, noDueDate)
	}
}
