package library_test

import (
	"encoding/json"
	"testing"

	"checkoutlock/circulation/internal/library"
)

// Storage keeps 5.0 as it is sent.
func TestServicePoint_ReadsAnyWholeNumber(t *testing.T) {
	t.Parallel()
	for _, minutes := range []string{"5", "5.0", "50e-1"} {
		var p library.ServicePoint
		if err := json.Unmarshal([]byte(`{"id":"desk","shelvingLagTime":`+minutes+`}`), &p); err != nil ||
			p.ShelvingLagTime == nil || *p.ShelvingLagTime != 5 {
			t.Errorf("%s: got %+v, %v", minutes, p, err)
		}
	}
}
