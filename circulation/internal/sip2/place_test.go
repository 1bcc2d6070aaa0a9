package sip2_test

import "testing"

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
