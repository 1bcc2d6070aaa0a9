package checkin_test

import (
	"errors"
	"testing"

	"checkoutlock/circulation/internal/library/librarytest"
)

func TestCheckIn_FailsIfAnythingCannotBeRead(t *testing.T) {
	t.Parallel()
	for n := int64(1); ; n++ {
		d := newBackend()
		d.FailAt, d.answers = n, []error{errChanged}
		_, err := d.checkIn(t, newReturn())
		if d.Reads() < n {
			break
		}
		if !errors.Is(err, librarytest.ErrUnread) || len(d.checkIns) > 1 {
			t.Errorf("read %d: got %v after %d check-ins", n, err, len(d.checkIns))
		}
	}
}
