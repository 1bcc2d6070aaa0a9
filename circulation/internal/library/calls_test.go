package library_test

import (
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
)

func TestCalls_PanicIsAnError(t *testing.T) {
	t.Parallel()
	g, ctx := library.NewCalls(t.Context())
	g.Go(func() error {
		<-ctx.Done() // the panic of another call ends this one
		return ctx.Err()
	})
	g.Go(func() error { panic("a bug") })
	if err := g.Wait(); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v, want %s", err, fault.Internal)
	}
}
