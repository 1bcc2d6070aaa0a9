package checkout_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
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
