package fault_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/schemas/fault"
)

func TestStatus_IsReversedByCodeFromAnswer(t *testing.T) {
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

func TestCodeFromAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		header string
		want   fault.Code
	}{
		"a proxy's 503 is no held lock":         {status: 503, header: "", want: fault.Unavailable},
		"a header that contradicts the status":  {status: 500, header: "LOCK_HELD", want: fault.Internal},
		"an unknown header":                     {status: 409, header: "NEW_CODE", want: fault.Conflict},
		"a sidecar that cannot authenticate us": {status: 401, header: "", want: fault.Forbidden},
		"headers that are too long":             {status: 431, header: "", want: fault.Malformed},
		"a teapot":                              {status: 418, header: "", want: fault.Internal},
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

func TestText(t *testing.T) {
	t.Parallel()
	cause := errors.New("boom")
	if got := fault.Text(fmt.Errorf("lending: %w",
		fault.Wrap(cause, fault.LockLost, "lock is gone"))); got != "lock is gone" {
		t.Errorf("a fault is shown as %q", got)
	}
	if got := fault.Text(cause); got != "boom" {
		t.Errorf("a plain error is shown as %q", got)
	}
}

func TestFound(t *testing.T) {
	t.Parallel()
	outage := fault.New(fault.Unavailable, "gone")
	for name, tt := range map[string]struct {
		err, want error
		exists    bool
	}{
		"there":     {err: nil, want: nil, exists: true},
		"not there": {err: fmt.Errorf("reading: %w", fault.New(fault.NotFound, "none")), want: nil, exists: false},
		"unknown":   {err: outage, want: outage, exists: false},
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

func TestList(t *testing.T) {
	t.Parallel()
	var wrong fault.List
	if err := wrong.Err(); err != nil {
		t.Errorf("an empty list is the error %v", err)
	}
	wrong.Add("limit", "must be an integer", strings.Repeat("1", 101))
	wrong = append(wrong, fault.StorageDetail("no such item"))
	var got *fault.Error
	if err := wrong.Err(); !errors.As(err, &got) || got.Code != fault.Invalid || len(got.Details) != 2 {
		t.Fatalf("got %v, want an Invalid fault with two details", err)
	}
	if want := "limit must be an integer; no such item"; got.Msg != want {
		t.Errorf("got the message %q, want %q", got.Msg, want)
	}
	if d := got.Details[0]; d.Type != "1" || d.Code != "INVALID" || d.Parameters[0].Key != "limit" ||
		*d.Parameters[0].Value != strings.Repeat("1", 100)+"…" {
		t.Errorf("got the detail %+v, want the key and the start of its value", d)
	}
}

func TestRefusal_HasACode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"": "INVALID", "ITEM_STATUS": "ITEM_STATUS"} {
		if got := fault.Refusal(code, "no"); got.Code != want {
			t.Errorf("%q became %q, want %q", code, got.Code, want)
		}
	}
}
