package loans_test

import (
	"errors"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/loans"
	"checkoutlock/schemas"
)

// Nothing is written by what cannot be read.
func TestLoans_FailIfAnythingCannotBeRead(t *testing.T) {
	t.Parallel()
	wanted := write(`,"proxyUserId":"` + librarytest.CarlID + `","checkoutServicePointId":"` + librarytest.DeskID +
		`","id":"` + librarytest.OtherID + `"`)
	for name, try := range map[string]func(*loans.Service) error{
		"record":  func(s *loans.Service) error { _, err := s.Record(t.Context(), wanted); return err },
		"replace": func(s *loans.Service) error { return s.Replace(t.Context(), loanID, wanted) },
	} {
		for n := int64(1); ; n++ {
			d := newBackend()
			d.FailAt, d.relations = n, []library.ProxyRelation{{Status: "Active"}}
			d.Queue = []schemas.QueuedRequest{
				librarytest.NewRequest("1", librarytest.AnnID, "Hold", "Item", schemas.RequestNotYetFilled, 1),
				librarytest.NewRequest("2", librarytest.CarlID, "Recall", "Item", schemas.RequestNotYetFilled, 2),
			}
			err := try(d.service())
			done := d.Reads() < n
			if written := len(d.lent)+len(d.replaced) == 1; errors.Is(err, librarytest.ErrUnread) == done ||
				done && err != nil || written != done {
				t.Errorf("%s, read %d: got %v, lent %+v, replaced %+v", name, n, err, d.lent, d.replaced)
			}
			if done {
				break
			}
		}
	}
}
