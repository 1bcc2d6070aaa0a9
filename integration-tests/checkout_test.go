package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
)

// addDescribedItem adds an item with all the details that a loan shows.
func (p *pair) addDescribedItem(t *testing.T) (itemID, holdingsID, instanceID, barcode string) {
	t.Helper()
	instanceID = p.addRecord(t, "/instance-storage/instances", record{
		"title": "Interesting Times", "hrid": "in77", "source": "local", "instanceTypeId": uuid.NewString(),
		"contributors": []record{
			{"name": "Kidby, Paul", "contributorNameTypeId": uuid.NewString()},
			{"name": "Pratchett, Terry", "contributorNameTypeId": uuid.NewString(), "primary": true},
		},
	})
	holdingsID = p.addRecord(t, "/holdings-storage/holdings", record{
		"instanceId": instanceID, "permanentLocationId": p.LocationID, "sourceId": uuid.NewString(), "callNumber": "PR6066",
	})
	itemID, barcode = p.addItem(t, record{
		"holdingsRecordId": holdingsID, "copyNumber": "c.2", "volume": "17", "enumeration": "v.17", "chronology": "1994",
		"status": record{"name": "In transit"}, "inTransitDestinationServicePointId": p.ServicePointID,
	})
	return itemID, holdingsID, instanceID, barcode
}

func TestCheckOut_AnswersAsFOLIO(t *testing.T) {
	t.Parallel()
	for _, enabled := range []bool{true, false} {
		t.Run(fmt.Sprintf("lock enabled is %t", enabled), func(t *testing.T) {
			t.Parallel()
			p := startPair(t, stack.Options{
				CirculationEnv: enableLock(fmt.Sprintf("CHECKOUT_LOCK_FEATURE_ENABLED=%t", enabled)),
			}, 5)
			itemID, holdingsID, instanceID, barcode := p.addDescribedItem(t)
			userID, patron := p.addPatron(t)
			before, staff := p.readRecord(t, "/item-storage/items/"+itemID), uuid.NewString()
			desk := p.machines[0]
			desk.Header = http.Header{okapi.UserIDHeader: {staff}}

			a := callEndpoint(t, desk, http.MethodPost, checkOutPath, record{
				"itemBarcode": barcode, "userBarcode": patron, "servicePointId": p.ServicePointID,
				"loanDate":         "2026-03-18T11:43:54.000Z",
				"somethingUnknown": true,
			})
			loan := readObject(t, a, http.StatusCreated)
			id := fmt.Sprint(loan["id"])
			if got := a.Header.Get("Location"); got != "/circulation/loans/"+id {
				t.Errorf("Location is %q", got)
			}
			want := record{
				"userId": userID, "itemId": itemID, "status.name": "Open", "action": "checkedout",
				"loanPolicyId": p.PolicyID, "loanPolicy.name": "Limited", "checkoutServicePointId": p.ServicePointID,
				"itemEffectiveLocationIdAtCheckOut": p.LocationID, "feesAndFines.amountRemainingToPay": 0.0,
				"patronGroupAtCheckout.id": p.GroupID, "patronGroupAtCheckout.name": "readers",
				"borrower.lastName": "Reader", "borrower.firstName": patron, "borrower.barcode": patron,
				"item.id": itemID, "item.holdingsRecordId": holdingsID, "item.instanceId": instanceID, "item.instanceHrid": "in77",
				"item.title": "Interesting Times", "item.barcode": barcode, "item.primaryContributor": "Pratchett, Terry",
				"item.callNumber": "PR6066", "item.copyNumber": "c.2", "item.volume": "17", "item.enumeration": "v.17",
				"item.chronology": "1994", "item.status.name": "Checked out", "item.location.name": "Main",
				"item.materialType.name":                  "book",
				"item.inTransitDestinationServicePointId": nil, "item.inTransitDestinationServicePoint": nil,
				"isDcb": false, "metadata.createdByUserId": staff, "itemStatus": nil, "patronGroupIdAtCheckout": nil,
			}
			checkParts(t, "answer", loan, want)
			checkTime(t, loan, "loanDate", "2026-03-18T11:43:54Z")
			checkTime(t, loan, "dueDate", "2026-04-15T11:43:54Z")
			if contributors, _ := readPart(loan, "item.contributors").([]any); len(contributors) != 2 {
				t.Errorf("contributors are %v, want 2", contributors)
			}

			want["checkoutServicePoint.name"] = "Desk"
			checkParts(t, "loan by id", readObject(t, callEndpoint(t, desk, http.MethodGet, "/circulation/loans/"+id, nil),
				http.StatusOK), want)
			page := readObject(t, callEndpoint(t, desk, http.MethodGet, "/circulation/loans?query="+
				url.QueryEscape(`userId=="`+userID+`"`), nil), http.StatusOK)
			list, _ := page["loans"].([]any)
			if page["totalRecords"] != 1.0 || len(list) != 1 {
				t.Fatalf("the patron's loans are %v", page)
			}
			checkParts(t, "loan in a list", list[0].(record), want)

			checkParts(t, "item", p.readRecord(t, "/item-storage/items/"+itemID), record{
				"status.name": "Checked out", "_version": before["_version"].(float64) +
					1, "inTransitDestinationServicePointId": nil,
			})
			p.checkNoLocks(t)
		})
	}
}

// checkTime compares a date independently of its zone and precision.
func checkTime(t *testing.T, r record, field, want string) {
	t.Helper()
	got, err := time.Parse(time.RFC3339, fmt.Sprint(readPart(r, field)))
	if err != nil {
		t.Errorf("%s: %v", field, err)
		return
	}
	if wanted, err := time.Parse(time.RFC3339, want); err != nil || !got.Equal(wanted) {
		t.Errorf("%s is %v, want %s (%v)", field, readPart(r, field), want, err)
	}
}

func TestCheckOut_DefaultsToNow(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 5)
	_, patron := p.addPatron(t)
	before := time.Now()
	loan := readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron), http.StatusCreated)
	lent, err := time.Parse(time.RFC3339, fmt.Sprint(loan["loanDate"]))
	if err != nil || lent.Before(before.Add(-time.Second)) || lent.After(time.Now().Add(time.Second)) {
		t.Errorf("loanDate is %v (%v), want about %s", loan["loanDate"], err, before)
	}
}

func TestCheckOut_RollingDueDates(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 5)
	tests := []struct {
		interval string
		duration int
		want     string
	}{
		{interval: "Minutes", duration: 90, want: "2026-01-31T11:30:00Z"},
		{interval: "Hours", duration: 5, want: "2026-01-31T15:00:00Z"},
		{interval: "Days", duration: 30, want: "2026-03-02T10:00:00Z"},
		{interval: "Weeks", duration: 3, want: "2026-02-21T10:00:00Z"},
		{interval: "Months", duration: 1, want: "2026-02-28T10:00:00Z"},
	}
	var rules []string
	items := make([]string, len(tests))
	for i, tt := range tests {
		material := p.addMaterialType(t, tt.interval)
		rules = append(rules, "m "+material, p.addLoanPolicy(t, tt.interval, record{
			"period": record{"duration": tt.duration, "intervalId": tt.interval},
		}))
		_, items[i] = p.addItem(t, record{"materialTypeId": material})
	}
	p.storeRules(t, p.formatRules(rules...))
	for i, tt := range tests {
		loan := readObject(t, callEndpoint(t, p.machines[0], http.MethodPost, checkOutPath, record{
			"itemBarcode": items[i], "userBarcode": p.addUser(t), "servicePointId": p.ServicePointID,
			"loanDate": "2026-01-31T10:00:00.000Z",
		}), http.StatusCreated)
		checkTime(t, loan, "dueDate", tt.want)
		checkParts(t, tt.interval, loan, record{"loanPolicy.name": tt.interval})
	}
}

func TestCheckOut_EndsWithTheMembership(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 5)
	ends := time.Now().Add(72 * time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	loan := readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], p.addUser(t, record{"expirationDate": ends})),
		http.StatusCreated)
	checkTime(t, loan, "dueDate", ends)
}

func TestCheckOut_LendableStatuses(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 100)
	_, patron := p.addPatron(t)
	for _, status := range []string{
		"Available", "Awaiting pickup", "Awaiting delivery", "In transit", "Missing", "Paged", "On order", "In process",
		"In process (non-requestable)", "Withdrawn", "Lost and paid", "Long missing", "Unavailable", "Unknown", "Restricted",
		"Order closed",
	} {
		_, barcode := p.addItem(t, record{"status": record{"name": status}})
		checkParts(t, status, readObject(t, p.lendBook(t, 0, barcode, patron), http.StatusCreated), record{
			"item.status.name": "Checked out",
		})
	}
}

func TestDryRun_LeavesNoTrace(t *testing.T) {
	t.Parallel()
	const path = "/circulation/check-out-by-barcode-dry-run"
	p := joinSharedPair(t, 1)
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	body := record{"itemBarcode": books[0], "userBarcode": patron}
	p.storeRules(t, p.formatRules("m "+p.MaterialTypeID, p.PolicyID))
	checkParts(t, "answer", readObject(t, callEndpoint(t, p.machines[0], http.MethodPost, path, body), http.StatusCreated),
		record{
			"loanPolicyId": p.PolicyID, "overdueFinePolicyId": stack.OverdueFinePolicyID,
			"lostItemPolicyId":     stack.LostItemPolicyID,
			"patronNoticePolicyId": stack.NoticePolicyID,
		})
	if n := p.countOpenLoans(t, userID); n != 0 {
		t.Errorf("the dry run made %d loans", n)
	}
	p.checkNoLocks(t)

	readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated) // the limit is reached
	body["itemBarcode"] = books[1]
	if a := callEndpoint(t, p.machines[0], http.MethodPost, path, body); a.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(string(a.Body), "ITEM_LIMIT_MATERIAL_TYPE") {
		t.Errorf("got %d %s, want the limit", a.Status, a.Body)
	}
}

func TestEndSession_DeletesItsRecords(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 3)
	for _, book := range books {
		readObject(t, p.lendBook(t, 0, book, patron), http.StatusCreated)
	}
	readObject(t, p.checkInItem(t, books[0], p.ServicePointID), http.StatusOK)
	otherID, other := p.addPatron(t)
	readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], other), http.StatusCreated)
	if got := p.countSessions(t, userID, "Check-out"); got != 3.0 {
		t.Fatalf("got %v records of check-outs, want 3", got)
	}
	end := record{"endSessions": []any{record{"actionType": "Check-out", "patronId": userID}}}
	for range 2 { // the second call finds no record
		if a := callEndpoint(t, p.machines[0], http.MethodPost, "/circulation/end-patron-action-session",
			end); a.Status != http.StatusNoContent {
			t.Fatalf("got %d %s", a.Status, a.Body)
		}
	}
	if out, in, others := p.countSessions(t, userID, "Check-out"), p.countSessions(t, userID, "Check-in"),
		p.countSessions(t, otherID, "Check-out"); out != 0.0 || in != 1.0 || others != 1.0 {
		t.Errorf("got %v records of check-outs, %v of check-ins, %v of another patron, want 0, 1 and 1", out, in, others)
	}
}

// countSessions returns how many session records of an action type a patron has.
func (p *pair) countSessions(t *testing.T, userID, action string) any {
	t.Helper()
	query := "?limit=0&query=patronId==" + userID + "%20and%20actionType==" + action
	return p.readRecord(t, "/patron-action-session-storage/patron-action-sessions"+query)["totalRecords"]
}

func TestEndSession_ByTimeout(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	goneID, gone := p.addPatron(t)
	stillID, still := p.addPatron(t)
	books := p.addBooks(t, 4)
	for i, patron := range []string{gone, gone, still, still} {
		readObject(t, p.lendBook(t, 0, books[i], patron), http.StatusCreated)
	}
	readObject(t, p.checkInItem(t, books[0], p.ServicePointID), http.StatusOK)
	table := schemaName(p.Storage.Tenant) + ".patron_action_session"
	execSQL(t, databaseURL(t), `UPDATE `+table+` SET jsonb = jsonb_set(jsonb, '{metadata,createdDate}',
		to_jsonb(to_char(now() AT TIME ZONE 'UTC' - interval '4 minutes', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))
		WHERE jsonb->>'actionType' = 'Check-out' AND (jsonb->>'patronId' = '`+goneID+`'
			OR id = (SELECT min(id::text)::uuid FROM `+table+` WHERE jsonb->>'patronId' = '`+stillID+`'))`)
	end := func(status int, want ...any) {
		t.Helper()
		a := p.callTimer(t, "/circulation/notice-session-expiration-by-timeout")
		got := []any{
			p.countSessions(t, goneID, "Check-out"), p.countSessions(t, goneID, "Check-in"),
			p.countSessions(t, stillID, "Check-out"),
		}
		if a.Status != status || !slices.Equal(got, want) {
			t.Errorf("got %d %s and %v records, want %d and %v", a.Status, a.Body, got, status, want)
		}
	}
	set := func(value any) {
		t.Helper()
		p.addRecord(t, "/circulation-settings-storage/circulation-settings", record{"name": "other_settings", "value": value})
	}
	set(record{"checkoutTimeout": true, "checkoutTimeoutDuration": -1})
	end(http.StatusUnprocessableEntity, 2.0, 1.0, 2.0)
	set(record{"checkoutTimeout": true, "checkoutTimeoutDuration": 60})
	end(http.StatusNoContent, 2.0, 1.0, 2.0)
	set(record{"checkoutTimeout": false, "checkoutTimeoutDuration": 60})
	end(http.StatusNoContent, 0.0, 1.0, 2.0) // the other patron's last record is young
	end(http.StatusNoContent, 0.0, 1.0, 2.0)
	set(record{"checkoutTimeout": true, "checkoutTimeoutDuration": 0})
	end(http.StatusNoContent, 0.0, 0.0, 0.0)
}
