package fault_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"checkoutlock/schemas/fault"
)

func TestEveryCodeHasItsStatusAndComesBack(t *testing.T) {
	t.Parallel()
	for _, code := range fault.Codes() {
		status := fault.Status(code)
		if status == http.StatusInternalServerError && code != fault.Internal {
			t.Errorf("%s has no status of its own", code)
		}
		if got := fault.CodeFromAnswer(status, string(code)); got != code {
			t.Errorf("%s came back as %s", code, got)
		}
	}
}

func TestAnAnswerFromSomethingInBetween(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		header string
		want   fault.Code
	}{
		"a proxy's 503 is no held lock":         {503, "", fault.Unavailable},
		"a header that contradicts the status":  {500, "LOCK_HELD", fault.Internal},
		"an unknown header":                     {409, "NEW_CODE", fault.Conflict},
		"a sidecar that cannot authenticate us": {401, "", fault.Forbidden},
		"a teapot":                              {418, "", fault.Internal},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fault.CodeFromAnswer(tt.status, tt.header); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	cause := errors.New("boom")
	wrapped := fmt.Errorf("lending: %w", fault.Wrap(cause, fault.LockLost, "lock is gone"))
	if !fault.Is(wrapped, fault.LockLost) || !errors.Is(wrapped, cause) {
		t.Errorf("the chain lost code or cause: %v", wrapped)
	}
	if got := fault.CodeOf(cause); got != fault.Internal {
		t.Errorf("a plain error is %s, want %s", got, fault.Internal)
	}
	if got := fault.CodeOf(nil); got != "" {
		t.Errorf("nil is %q, want none", got)
	}
}

func TestFound(t *testing.T) {
	t.Parallel()
	outage := fault.New(fault.Unavailable, "gone")
	for name, tt := range map[string]struct {
		err, want error
		exists    bool
	}{
		"there":     {nil, nil, true},
		"not there": {fmt.Errorf("reading: %w", fault.New(fault.NotFound, "none")), nil, false},
		"unknown":   {outage, outage, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, exists, err := fault.Found("record", tt.err)
			if got != "record" || exists != tt.exists || !errors.Is(err, tt.want) {
				t.Errorf("got %q, %t, %v, want %t, %v", got, exists, err, tt.exists, tt.want)
			}
		})
	}
}
