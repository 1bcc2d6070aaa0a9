package drill

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas/fault"
)

// ending is how one check-out of a burst ended.
type ending struct {
	err  error
	took time.Duration
}

// sendBurst tries to lend all books at once and waits for all ends.
func (s *Service) sendBurst(ctx context.Context) Round {
	books := listBooks()
	endings := make([]ending, len(books))
	start := make(chan struct{})
	var sent sync.WaitGroup
	for i, book := range books {
		sent.Go(func() {
			<-start
			endings[i] = s.lend(ctx, book)
		})
	}
	close(start)
	sent.Wait()
	return sumUp(endings)
}

func (s *Service) lend(ctx context.Context, book string) (e ending) {
	defer fault.Recover(&e.err)
	began := time.Now()
	_, e.err = s.CheckOut(ctx, checkout.Request{ItemBarcode: book, UserBarcode: patronBarcode, ServicePointID: servicePoint})
	e.took = time.Since(began)
	return e
}

// sumUp counts all but what storage knows: the loans and the locks.
func sumUp(endings []ending) Round {
	var r Round
	counts := map[string]int{}
	for _, e := range endings {
		r.Longest = max(r.Longest, e.took)
		if e.err == nil {
			continue
		}
		code, refused := nameReason(e.err)
		counts[code]++
		if refused {
			r.Refused++
		} else {
			r.Failed++
		}
	}
	for code, n := range counts {
		r.Reasons = append(r.Reasons, Reason{code, n})
	}
	slices.SortFunc(r.Reasons, func(a, b Reason) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Code, b.Code))
	})
	return r
}

// nameReason returns the code of the first error, or else its message, and whether it is a refusal.
func nameReason(err error) (code string, refused bool) {
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case !ok && errors.Is(err, context.DeadlineExceeded):
		return string(fault.Timeout), false
	case !ok:
		return string(fault.Internal), false
	case f.Code != fault.Invalid && f.Code != fault.LockNotAcquired:
		return string(f.Code), false
	case len(f.Details) == 0:
		return f.Msg, true
	}
	return cmp.Or(f.Details[0].Code, f.Details[0].Message), true
}
