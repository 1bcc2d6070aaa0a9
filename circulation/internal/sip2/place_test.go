package sip2_test

import (
	"testing"

	"checkoutlock/circulation/internal/library"
)

// It may be a terminal of machines that sign in, too.
func TestLogin_UnaskedHasTheServicePointOfItsRecord(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) {
		s.terminals[0]["servicePointFromLogin"] = true
		s.handlers["11"] = sayServicePoint
		s.settings.Unasked = []string{"desk-1"}
	})
	h.connect().expect(checkOut, "12bbc823fa-06e7-42c6-87b5-605a5da22f15")
}

// The machine sent its service point with a login that did not need it.
func TestTerminal_WhosePlaceComesWithTheLoginSignsInAnew(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.handlers["11"] = sayServicePoint })
	h.others.set(&library.Terminal{Login: "stored", ServicePointID: "sp"}, false)
	const signIn = "9300CNstored|COany|CPcd1|"
	m := h.connect()
	m.expect(signIn, "941")
	m.expect(checkOut+"BK0|", "12sp")
	h.others.set(&library.Terminal{Login: "stored", ServicePointFromLogin: true}, false)
	m.expect(checkOut+"BK1|", "120NUN"+date+"AOmain|AAP-1002|ABD-2003|AJ|AH|AFmachine.notSignedIn|")
	m.expectEnd()
	m = h.connect()
	m.expect(signIn, "941")
	m.expect(checkOut+"BK2|", "12cd1-id")
	h.others.set(&library.Terminal{Login: "stored", ServicePointID: "sp"}, false)
	m.expect(checkOut+"BK3|", "12sp")
	h.others.set(&library.Terminal{Login: "stored", ServicePointFromLogin: true}, false)
	m.expect(checkOut+"BK4|", "12cd1-id")
}
