package integration_test

import (
	"net/http"
	"testing"

	"checkoutlock/integration-tests/stack"
)

const past, future = "2020-01-01T00:00:00.000Z", "2999-12-31T00:00:00.000Z"

// proxy has the check-out made by a proxy who differs from others by more, and
// stores no relation of theirs.
func (s *stage) proxy(t *testing.T, more ...record) (id string) {
	t.Helper()
	barcode := "proxy " + s.user
	id = s.add(t, "/users", with(record{
		"barcode": barcode, "active": true, "patronGroup": s.GroupID, "personal": record{"lastName": "Proxy"},
	}, more...))
	s.name("proxy", barcode)
	with(s.more, record{"proxyUserBarcode": barcode})
	return id
}

// through has the check-out made by a proxy, by leave of the patron.
func through(t *testing.T, s *stage) {
	t.Helper()
	s.proxyID = s.proxy(t)
	s.add(t, "/proxiesfor", record{"userId": s.userID, "proxyUserId": s.proxyID, "status": "Active", "expirationDate": future})
}

// throughOne has the check-out made by such a proxy with such a relation; nil is none.
func throughOne(proxy, relation record) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		id := s.proxy(t, proxy)
		if relation != nil {
			s.add(t, "/proxiesfor", with(record{"userId": s.userID, "proxyUserId": id, "status": "Active"}, relation))
		}
	}
}

func TestScenariosOfProxies(t *testing.T) {
	t.Parallel()
	p := start(t, stack.Options{CirculationEnv: on()}, 9)
	const (
		inactive   = "Cannot check out via inactive proxying user (proxyUserBarcode={proxy})"
		unrelated  = "Cannot check out item via proxy when relationship is invalid (proxyUserBarcode={proxy})"
		undecided  = "Cannot determine if proxying user is active or not (proxyUserBarcode={proxy})"
		noSuchUser = "Could not find user with matching barcode [USER_BARCODE_NOT_FOUND] "
	)
	p.play(t, nil, []scenario{
		{
			name: "a proxy borrows for the patron", folio: "check-out via proxy; blanks in the proxy's barcode", given: through,
			after: func(t *testing.T, s *stage, loan record) {
				t.Helper()
				checkParts(t, "loan", loan, record{"proxyUserId": s.proxyID, "borrower.barcode": s.user})
			},
		},
		{name: "an inactive proxy", folio: "proxy inactive", given: throughOne(record{"active": false}, record{}), refused: inactive},
		{name: "a proxy whose membership is over", folio: "proxy inactive", given: throughOne(record{"expirationDate": past}, record{}), refused: inactive},
		{name: "a proxy who may be active or not", folio: "proxy inactive", given: throughOne(record{"active": nil}, record{}), refused: undecided},
		{name: "a proxy whom nobody named", folio: "proxy without a relationship", given: throughOne(nil, nil), refused: unrelated},
		{name: "a proxy no longer", folio: "proxy without a relationship", given: throughOne(nil, record{"expirationDate": past}), refused: unrelated},
		{name: "a proxy who is switched off", folio: "proxy without a relationship", given: throughOne(nil, record{"status": "Inactive"}), refused: unrelated},
		{
			name: "the patron's sponsor is not the patron's proxy", folio: "proxy without a relationship",
			given: func(t *testing.T, s *stage) {
				t.Helper()
				s.add(t, "/proxiesfor", record{"userId": s.proxy(t), "proxyUserId": s.userID, "status": "Active"})
			},
			refused: unrelated,
		},
		{
			name: "the patron as their own proxy", folio: "proxy to themself",
			given: func(_ *testing.T, s *stage) {
				s.name("id", s.userID)
				with(s.more, record{"proxyUserBarcode": s.user})
			},
			refused: "User cannot be proxy for themselves [USER_CANNOT_BE_PROXY_FOR_THEMSELVES] (proxyUserId={id})",
		},
		{name: "an unknown proxy", folio: "proxy cannot be found", given: sending(record{"proxyUserBarcode": "nobody"}), refused: noSuchUser + "(proxyUserBarcode=nobody)"},
		{
			name: "patron and proxy unknown", folio: "several errors",
			given:   sending(record{"proxyUserBarcode": "nobody"}, func(_ *testing.T, s *stage) { s.user = "nobody either" }),
			refused: noSuchUser + "(userBarcode=nobody either)\n" + noSuchUser + "(proxyUserBarcode=nobody)",
		},
	})
}

// setStatus writes an item's status past circulation.
func setStatus(status string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		path := "/item-storage/items/" + s.itemID
		if _, err := s.Storage.Must(t.Context(), http.MethodPut, path, with(s.stored(t, path), record{"status": record{"name": status}})); err != nil {
			t.Fatal(err)
		}
	}
}

// manualBlock adds a block by hand that differs from the usual one.
func manualBlock(more record) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.add(t, "/manualblocks", with(record{"userId": s.userID, "desc": "lost a book", "borrowing": true}, more))
	}
}

func TestScenariosOfBlockedPatronsAndLentItems(t *testing.T) {
	t.Parallel()
	p, ids := limitLibrary(t)
	const (
		toPatron = " {patronBlock: " + mayPatron + "}"
		openLoan = "Cannot check out item that already has an open loan [ITEM_HAS_OPEN_LOAN] (itemBarcode={item})"
	)
	p.play(t, ids, []scenario{
		{name: "an open loan of an item that somebody made available", folio: "open loan exists, status reset by hand", given: sending(nil, lentOut, setStatus("Available")), refused: openLoan},
		{name: "a status without a loan", folio: "already checked out", given: setStatus("Checked out"), refused: "Item is already checked out (itemBarcode={item})"},
		{name: "the patron has the item", folio: "already checked out", given: func(t *testing.T, s *stage) {
			t.Helper()
			object(t, s.lend(t, 0, s.barcode, s.user), http.StatusCreated)
		}, refused: itemIsCheckedOut + "\n" + atTheLimit + " {itemLimitBlock: " + mayLimit + "}"},
		{
			name: "two blocks by hand are one error", folio: "manual block",
			given:   sending(nil, manualBlock(record{"id": nil}), manualBlock(record{"expirationDate": future})),
			refused: "Patron blocked from borrowing [USER_IS_BLOCKED_MANUALLY] (reason=lost a book;lost a book)" + toPatron,
		},
		{name: "a block by hand that is over", folio: "manual block", given: manualBlock(record{"expirationDate": past})},
		{name: "a block by hand of renewals", folio: "manual block", given: manualBlock(record{"borrowing": false, "renewals": true})},
		{
			name: "blocks by rule are an error each", folio: "automated block",
			given: func(t *testing.T, s *stage) {
				t.Helper()
				if _, err := s.Storage.Must(t.Context(), http.MethodPut, "/automated-patron-blocks/"+s.userID, record{"automatedPatronBlocks": []record{
					{"blockBorrowing": true, "message": "Too many overdue"}, {"blockRenewals": true, "message": "No renewals"}, {"blockBorrowing": true, "message": "Owes too much"},
				}}); err != nil {
					t.Fatal(err)
				}
			},
			refused: blockedByRule + toPatron + "\nOwes too much [USER_IS_BLOCKED_AUTOMATICALLY]" + toPatron,
		},
		{
			name: "everything that is wrong is told at once", folio: "several errors in one response",
			given: func(t *testing.T, s *stage) {
				t.Helper()
				reachLimit(t, s)
				blockByHand(t, s)
				blockByRule(t, s)
				throughOne(record{"active": false}, nil)(t, s)
				somebody, _ := s.patron(t)
				s.request(t, s.itemID, somebody, 1)
				setStatus("Declared lost")(t, s)
				with(s.more, record{"servicePointId": ""})
			},
			refused: "Check out must be performed at a service point (servicePointId=null)\n" +
				blockedByHand + toPatron + "\n" + blockedByRule + toPatron + "\n" +
				"Cannot check out via inactive proxying user (proxyUserBarcode={proxy})\n" +
				"Cannot check out item via proxy when relationship is invalid (proxyUserBarcode={proxy})\n" +
				"A Book of Many Copies (book) (Barcode: {item}) has the item status Declared lost and cannot be checked out (itemBarcode={item})\n" +
				"A Book of Many Copies (Barcode: {item}) cannot be checked out to user Reader, {patron} because it has been requested by another patron (userBarcode={patron})\n" +
				atTheLimit + " {itemLimitBlock: " + mayLimit + "}",
		},
	})
}
