package checkout_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestService_TakesAPlaceAndGivesItBack(t *testing.T) {
	t.Parallel()
	dry := checkout.DryRunRequest{ItemBarcode: "book", UserBarcode: "ann"}
	for name, f := range map[string]func(ctx context.Context, s *checkout.Service) error{
		"a check-out": func(ctx context.Context, s *checkout.Service) error {
			_, err := s.CheckOut(ctx, checkout.Request{
				ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
			})
			return err
		},
		"a dry run": func(ctx context.Context, s *checkout.Service) error {
			_, err := s.DryRun(ctx, dry)
			return err
		},
		"an explanation": func(ctx context.Context, s *checkout.Service) error {
			_, err := s.Explain(ctx, dry)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			if err := f(t.Context(), w.service()); err != nil || !slices.Equal(w.entered, []string{"ann"}) || w.left != 1 {
				t.Errorf("got %v, places taken for %v and given back %d, want one for ann", err, w.entered, w.left)
			}
			w.overloaded = fault.New(fault.Overloaded, "too many")
			if err := f(t.Context(), w.service()); !errors.Is(err, w.overloaded) || w.left != 1 {
				t.Errorf("got %v without a place, want %v", err, w.overloaded)
			}
		})
	}
}

func TestService_AdmitsARequestOnce(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.overloaded = fault.New(fault.Overloaded, "too many")
	_, err := w.service().Lend(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
	}, checkout.KeyLease{})
	if err != nil || w.left != 0 {
		t.Errorf("got %v, places given back %d, want a loan and none", err, w.left)
	}
}

func TestService_ReportsACheckOutThatIsNotAdmitted(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newBackend()
	w.overloaded = fault.New(fault.Overloaded, "too many")
	s := w.service()
	s.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	_, err := s.CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
	})
	if !errors.Is(err, w.overloaded) || len(w.endings) != 1 {
		t.Fatalf("got %v and %d endings, want %v and one", err, len(w.endings), w.overloaded)
	}
	e := w.endings[0]
	if e.Outcome != checkout.OutcomeOverloaded || e.Code != string(fault.Overloaded) || e.UserBarcode != "ann" ||
		e.ItemBarcode != "book" {
		t.Errorf("got %+v", e)
	}
	if line := log.String(); strings.Count(line, "level=DEBUG msg=check-out") != 1 ||
		!strings.Contains(line, "outcome=overloaded") {
		t.Errorf("logged %q, want one line of debug with the outcome", line)
	}
	if len(w.commits) > 0 || len(w.steps) > 0 {
		t.Errorf("it was worked on: %v", w.steps)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.overloaded = ctx.Err()
	if _, err := s.CheckOut(ctx, checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann",
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if e := w.endings[1]; e.Outcome != checkout.OutcomeClientLeft {
		t.Errorf("a machine that left the line ended as %+v", e)
	}
}

// leases is keyed.Storage, which answers each call for a lease alike, and leaves the rest out.
type leases struct {
	keyed.Storage
	lease checkout.KeyLease
	err   error
}

func (l leases) LeaseKey(context.Context, schemas.KeyLeaseRequest) (checkout.KeyLease, *keyed.Answer, error) {
	return l.lease, nil, l.err
}

func (l leases) RenewLease(context.Context, string, time.Duration) error { return nil }

// A check-out with a key that ends before its checks is reported as one without a key is.
func TestService_ReportsACheckOutWhoseKeyFails(t *testing.T) {
	t.Parallel()
	taken := checkout.KeyLease{ID: "lease", LoanID: librarytest.OtherID, Taken: true}
	for name, tt := range map[string]struct {
		leases leases
		leaves bool  // the machine, before it is answered
		unread error // of the loan
		want   checkout.Ending
	}{
		"storage is away": {
			leases: leases{err: fault.New(fault.Unavailable, "gone")},
			want:   checkout.Ending{Outcome: checkout.OutcomeFailed, Code: "UNAVAILABLE", Reason: "gone"},
		},
		"the machine leaves": {
			leases: leases{err: context.Canceled}, leaves: true,
			want: checkout.Ending{Outcome: checkout.OutcomeClientLeft, Reason: "The machine left before it was answered"},
		},
		"a loan that may exist cannot be read": {
			leases: leases{lease: taken}, unread: errGone,
			want: checkout.Ending{
				Outcome: checkout.OutcomeUnknown, Code: "CHECK_OUT_OUTCOME_UNKNOWN", LoanID: taken.LoanID,
				Reason: "Storage was lost: it is not known yet whether the item was lent. The loan, if there is one, has this id",
			},
		},
		"the key is that of another check-out": {leases: leases{err: fault.New(fault.KeyReused, "reused")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.loanErr = tt.unread
			requests := keyed.Requests{
				Storage: tt.leases, CheckOuts: w.service(), Ended: func(keyed.Outcome) {}, Log: slog.New(slog.DiscardHandler),
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if tt.leaves {
				leave()
			}
			req := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID}
			_, err := requests.CheckOut(ctx, "k", "hash", req,
				func(_ checkout.Lent, err error) (keyed.Answer, error) { return keyed.Answer{}, err })
			if err == nil || len(w.commits) > 0 {
				t.Errorf("got %v and %d commits, want an error and none", err, len(w.commits))
			}
			if tt.want.Outcome == "" {
				if len(w.endings) > 0 {
					t.Errorf("reported %+v, want nothing: it is no check-out of its own", w.endings)
				}
				return
			}
			tt.want.UserBarcode, tt.want.ItemBarcode, tt.want.ServicePointID = "ann", "book", librarytest.DeskID
			if len(w.endings) != 1 {
				t.Fatalf("reported %+v, want one end", w.endings)
			}
			got := w.endings[0]
			if tt.want.Took = got.Took; got != tt.want || got.Took <= 0 {
				t.Errorf("reported %+v, want %+v", got, tt.want)
			}
		})
	}
}
