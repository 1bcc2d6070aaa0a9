package fault_test

import (
	"errors"
	"strings"
	"testing"

	"checkoutlock/schemas/fault"
)

func TestRecover(t *testing.T) {
	t.Parallel()
	errOrdinary := errors.New("ordinary")
	run := func(f func() error) (err error) {
		defer fault.Recover(&err)
		return f()
	}
	if err := run(func() error { return errOrdinary }); !errors.Is(err, errOrdinary) {
		t.Errorf("without a panic: got %v, want %v", err, errOrdinary)
	}
	err := run(func() error { panic("a bug") })
	var p *fault.PanicError
	if !fault.Is(err, fault.Internal) || !errors.As(err, &p) || p.Value != "a bug" {
		t.Fatalf("got %v, want %s caused by the panic", err, fault.Internal)
	}
	if !strings.Contains(err.Error(), "panic_test.go") {
		t.Errorf("%v: the stack does not name this file", err)
	}
	if strings.Contains(fault.Text(err), "a bug") {
		t.Errorf("callers see the panic: %q", fault.Text(err))
	}
}
