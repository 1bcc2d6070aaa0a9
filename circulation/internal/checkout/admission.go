package checkout

import (
	"context"
	"time"
)

// Admission bounds how many check-outs are worked on at once.
type Admission interface {
	// Enter waits for a place, which leave gives back. Fault: Overloaded.
	Enter(ctx context.Context, userBarcode string) (leave func(), err error)
}

// Admit waits for a place for the check-out, which leave gives back. A check-out
// that gets none has ended, and is observed and logged as any other. A caller that
// has something to do before CheckOut calls it, and then sets Request.Admitted.
// Faults: those of Admission.
func (s *Service) Admit(ctx context.Context, req Request) (leave func(), err error) {
	start := time.Now()
	leave, err = s.Admission.Enter(ctx, req.UserBarcode)
	if err != nil {
		t := &try{Service: s, plan: &plan{req: req}}
		t.end(ctx, err, time.Since(start))
	}
	return leave, err
}

// enter is Admit for a request that has no place yet.
func (s *Service) enter(ctx context.Context, req Request) (leave func(), err error) {
	if req.Admitted {
		return func() {}, nil
	}
	return s.Admit(ctx, req)
}
