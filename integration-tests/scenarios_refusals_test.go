package integration_test

import (
	"net/http"
	"testing"
)

const past, future = "2020-01-01T00:00:00.000Z", "2999-12-31T00:00:00.000Z"

// addProxy makes a new patron with more properties the proxy of the check-out. It stores no
// relationship.
func (s *stage) addProxy(t *testing.T, more ...record) (id string) {
	t.Helper()
	barcode := "proxy " + s.userBarcode
	id = s.addRecord(t, "/users", setFields(record{
		"barcode": barcode, "active": true, "patronGroup": s.GroupID, "personal": record{"lastName": "Proxy"},
	}, more...))
	s.setPlaceholder("proxy", barcode)
	setFields(s.extra, record{"proxyUserBarcode": barcode})
	return id
}

// useProxy makes the check-out by a proxy with a valid relationship.
func useProxy(t *testing.T, s *stage) {
	t.Helper()
	s.proxyID = s.addProxy(t)
	s.addRecord(t, "/proxiesfor", record{
		"userId": s.userID, "proxyUserId": s.proxyID, "status": "Active", "expirationDate": future,
	})
}

// useProxyWith makes the check-out by a proxy with these properties and a relationship with
// those; nil means no relationship.
func useProxyWith(proxy, relation record) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		id := s.addProxy(t, proxy)
		if relation != nil {
			s.addRecord(t, "/proxiesfor", setFields(record{"userId": s.userID, "proxyUserId": id, "status": "Active"}, relation))
		}
	}
}

func TestScenarios_Proxies(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	const (
		inactive  = "Cannot check out via inactive proxying user [PROXY_IS_INACTIVE_OR_EXPIRED] (proxyUserBarcode={proxy})"
		unrelated = "Cannot check out item via proxy when relationship is invalid [PROXY_RELATIONSHIP_INVALID] " +
			"(proxyUserBarcode={proxy})"
		undecided = "Cannot determine if proxying user is active or not [PROXY_STATUS_CANNOT_BE_DETERMINED] " +
			"(proxyUserBarcode={proxy})"
		noSuchUser = "Could not find user with matching barcode [USER_BARCODE_NOT_FOUND] "
	)
	p.runScenarios(t, nil, []scenario{
		{
			name: "a proxy borrows for the patron", folio: "check-out via proxy; blanks in the proxy's barcode",
			prepare: useProxy,
			check: func(t *testing.T, s *stage, loan record) {
				t.Helper()
				checkParts(t, "loan", loan, record{"proxyUserId": s.proxyID, "borrower.barcode": s.userBarcode})
			},
		},
		{
			name: "an inactive proxy", folio: "proxy inactive", prepare: useProxyWith(record{"active": false}, record{}),
			wantErrors: inactive,
		},
		{
			name: "an expired proxy", folio: "proxy inactive", prepare: useProxyWith(record{"expirationDate": past}, record{}),
			wantErrors: inactive,
		},
		{
			name: "a proxy without the property active", folio: "proxy inactive",
			prepare: useProxyWith(record{"active": nil}, record{}), wantErrors: undecided,
		},
		{
			name: "a proxy without a relationship", folio: "proxy without a relationship", prepare: useProxyWith(nil, nil),
			wantErrors: unrelated,
		},
		{
			name: "an expired relationship", folio: "proxy without a relationship",
			prepare: useProxyWith(nil, record{"expirationDate": past}), wantErrors: unrelated,
		},
		{
			name: "an inactive relationship", folio: "proxy without a relationship",
			prepare: useProxyWith(nil, record{"status": "Inactive"}), wantErrors: unrelated,
		},
		{
			name: "the patron's sponsor as the proxy", folio: "proxy without a relationship",
			prepare: func(t *testing.T, s *stage) {
				t.Helper()
				s.addRecord(t, "/proxiesfor", record{"userId": s.addProxy(t), "proxyUserId": s.userID, "status": "Active"})
			},
			wantErrors: unrelated,
		},
		{
			name: "the patron as their own proxy", folio: "proxy to themself",
			prepare: func(_ *testing.T, s *stage) {
				s.setPlaceholder("id", s.userID)
				setFields(s.extra, record{"proxyUserBarcode": s.userBarcode})
			},
			wantErrors: "User cannot be proxy for themselves [USER_CANNOT_BE_PROXY_FOR_THEMSELVES] (proxyUserId={id})",
		},
		{
			name: "an unknown proxy", folio: "proxy cannot be found",
			prepare: setCheckOut(record{"proxyUserBarcode": "unknown"}), wantErrors: noSuchUser + "(proxyUserBarcode=unknown)",
		},
		{
			name: "patron and proxy unknown", folio: "several errors",
			prepare: setCheckOut(record{"proxyUserBarcode": "unknown"},
				func(_ *testing.T, s *stage) { s.userBarcode = "unknown too" }),
			wantErrors: noSuchUser + "(userBarcode=unknown too)\n" + noSuchUser + "(proxyUserBarcode=unknown)",
		},
	})
}

// setItemStatus writes the status of the stage's item past circulation.
func setItemStatus(status string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.setItemStatus(t, s.itemID, status)
	}
}

// addManualBlock adds a manual block with more properties.
func addManualBlock(more record) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.addRecord(t, "/manualblocks", setFields(record{"userId": s.userID, "desc": "lost a book", "borrowing": true}, more))
	}
}

func TestScenarios_BlockedPatronsAndLentItems(t *testing.T) {
	t.Parallel()
	p, ids := startLimitLibrary(t)
	const (
		toPatron = " {patronBlock: " + mayPatron + "}"
		openLoan = "Cannot check out item that already has an open loan [ITEM_HAS_OPEN_LOAN] (itemBarcode={item})"
	)
	p.runScenarios(t, ids, []scenario{
		{
			name: "an open loan of an item with the status Available", folio: "open loan exists, status reset by hand",
			prepare: setCheckOut(nil, lendToAnother, setItemStatus("Available")), wantErrors: openLoan,
		},
		{
			name: "a status without a loan", folio: "already checked out", prepare: setItemStatus("Checked out"),
			wantErrors: "Item is already checked out [ITEM_ALREADY_CHECKED_OUT] (itemBarcode={item})",
		},
		{name: "the patron has the item", folio: "already checked out", prepare: func(t *testing.T, s *stage) {
			t.Helper()
			readObject(t, s.lendBook(t, 0, s.barcode, s.userBarcode), http.StatusCreated)
		}, wantErrors: "Item is already checked out to this patron [ITEM_ALREADY_CHECKED_OUT_TO_PATRON] " +
			"(itemBarcode={item})\n" +
			atTheLimit + " {itemLimitBlock: " + mayLimit + "}"},
		{
			name: "two blocks by hand are one error", folio: "manual block",
			prepare:    setCheckOut(nil, addManualBlock(record{"id": nil}), addManualBlock(record{"expirationDate": future})),
			wantErrors: "Patron blocked from borrowing [USER_IS_BLOCKED_MANUALLY] (reason=lost a book;lost a book)" + toPatron,
		},
		{name: "an expired block by hand", folio: "manual block", prepare: addManualBlock(record{"expirationDate": past})},
		{
			name: "a block by hand of renewals", folio: "manual block",
			prepare: addManualBlock(record{"borrowing": false, "renewals": true}),
		},
		{
			name: "blocks by rule are an error each", folio: "automated block",
			prepare: func(t *testing.T, s *stage) {
				t.Helper()
				s.storeAutomatedBlocks(t, s.userID,
					record{
						"blockBorrowing": true, "message": "Too many overdue",
					}, record{"blockRenewals": true, "message": "No renewals"},
					record{"blockBorrowing": true, "message": "Owes too much"},
				)
			},
			wantErrors: blockedByRule + toPatron + "\nOwes too much [USER_IS_BLOCKED_AUTOMATICALLY]" + toPatron,
		},
		{
			name: "all errors are reported at once", folio: "several errors in one response",
			prepare: func(t *testing.T, s *stage) {
				t.Helper()
				reachLimit(t, s)
				blockByHand(t, s)
				blockByRule(t, s)
				useProxyWith(record{"active": false}, nil)(t, s)
				other, _ := s.addPatron(t)
				s.addRequest(t, s.itemID, other, 1)
				setItemStatus("Declared lost")(t, s)
				setFields(s.extra, record{"servicePointId": ""})
			},
			wantErrors: "Check out must be performed at a service point [PROPERTY_MISSING] (servicePointId=null)\n" +
				blockedByHand + toPatron + "\n" + blockedByRule + toPatron + "\n" +
				"Cannot check out via inactive proxying user [PROXY_IS_INACTIVE_OR_EXPIRED] (proxyUserBarcode={proxy})\n" +
				"Cannot check out item via proxy when relationship is invalid [PROXY_RELATIONSHIP_INVALID] " +
				"(proxyUserBarcode={proxy})\n" +
				"A Book of Many Copies (book) (Barcode: {item}) has the item status Declared lost and cannot be checked out " +
				"[ITEM_STATUS] (itemBarcode={item})\n" +
				"A Book of Many Copies (Barcode: {item}) cannot be checked out to user Reader, {patron} because it has been " +
				"requested by another patron [ITEM_REQUESTED] (userBarcode={patron})\n" +
				atTheLimit + " {itemLimitBlock: " + mayLimit + "}",
		},
	})
}
