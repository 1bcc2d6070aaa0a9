package keyed_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/schemas/fault"
)

// A lease that another request has taken over does not lapse, so no line may say so.
func TestRequests_LogNoLeaseThatAnotherHas(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.Unavailable, "down")
	for name, tt := range map[string]struct {
		change func(*storage) // while the check-out fails
		lines  int
	}{
		"another has it":    {change: func(s *storage) { s.holder = "other" }, lines: 0},
		"storage goes away": {change: func(s *storage) { s.refuse = []error{down, down} }, lines: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			s := &storage{}
			r := s.requests()
			r.Log = slog.New(slog.NewTextHandler(&log, nil))
			held := fault.New(fault.LockNotAcquired, "unable to acquire lock")
			_, err := r.Do(t.Context(), "k", hash, book, func(context.Context, checkout.KeyLease) (keyed.Answer, error) {
				tt.change(s)
				return keyed.Answer{}, held
			})
			if lines := strings.Count(log.String(), "key lease not given up"); !errors.Is(err, held) || lines != tt.lines {
				t.Errorf("got %v and the log %q, want %d lines", err, log.String(), tt.lines)
			}
		})
	}
}
