package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	checkOutPath = "/circulation/check-out-by-barcode"
	checkOutBody = `{"itemBarcode":"036","userBarcode":"569","servicePointId":"s"}`
)

// kept keeps one key, as storage would.
type kept struct {
	mu     sync.Mutex
	asked  []schemas.KeyLeaseRequest
	answer *keyed.Answer
	taken  bool
	err    error
}

func (k *kept) LeaseKey(_ context.Context, r schemas.KeyLeaseRequest) (checkout.KeyLease, *keyed.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, r)
	return checkout.KeyLease{ID: r.LeaseID, LoanID: loanID, Taken: k.taken}, k.answer, k.err
}

func (k *kept) RenewLease(context.Context, string, time.Duration) error { return nil }

func (k *kept) AnswerLease(_ context.Context, _ string, a keyed.Answer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = &a
	return nil
}

func withKey(keys ...string) http.Header { return http.Header{schemas.IdempotencyKeyHeader: keys} }

func TestCheckOut_AnswersARepeatLikeTheFirst(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err    error
		status int
	}{
		"lent": {nil, http.StatusCreated},
		"refused": {
			fault.Validation(fault.Detail{
				Message: "Item is <not> loanable", Code: "X", Parameters: []fault.Parameter{{Key: "a"}},
				OverridableBlock: &fault.OverridableBlock{Name: "b", MissingPermissions: []string{"p"}},
			}),
			422,
		},
		"refused with two reasons": {
			fault.Validation(fault.Detail{Message: "one"}, fault.Detail{
				Message: "two", Parameters: []fault.Parameter{fault.Param("k", "v")},
			}),
			422,
		},
		"refused in words": {fault.New(fault.Invalid, "No"), 422},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &kept{}
			b := &backend{keys: k, err: tt.err, extra: withKey("a key")}
			status, header, body := b.send(t, "POST", checkOutPath, checkOutBody)
			if status != tt.status || b.lease.LoanID != loanID || b.lease.ID == "" || b.lease.ID != k.asked[0].LeaseID {
				t.Fatalf("answered %d %s, lent under %+v, leased %+v", status, body, b.lease, k.asked)
			}
			b.lease.LoanID, b.err = "", fault.New(fault.Internal, "must not be asked")
			again, headerAgain, bodyAgain := b.send(t, "POST", checkOutPath, " "+checkOutBody+"\n")
			if again != status || bodyAgain != body || b.lease.LoanID != "" {
				t.Errorf("the repeat was answered %d %s, want %d %s, lent under %+v", again, bodyAgain, status, body, b.lease)
			}
			for _, name := range []string{"Location", "Content-Type", fault.Header} {
				if got, want := headerAgain.Get(name), header.Get(name); got != want {
					t.Errorf("the repeat's %s is %q, want %q", name, got, want)
				}
			}
			if k.asked[0].BodyHash != k.asked[1].BodyHash || k.asked[0].Key != "a key" {
				t.Errorf("asked for %+v", k.asked)
			}
		})
	}
}

func TestCheckOut_IsAdmittedOnce(t *testing.T) {
	t.Parallel()
	b := &backend{keys: &kept{}, extra: withKey("k")}
	b.send(t, "POST", checkOutPath, checkOutBody)
	if len(b.admitted) != 1 || b.lease.ID == "" {
		t.Errorf("with a key, admitted %q before the lease, and asked for %+v", b.admitted, b.asked)
	}
	plain := &backend{}
	plain.send(t, "POST", checkOutPath, checkOutBody)
	if len(plain.admitted) != 0 || plain.lease.ID != "" {
		t.Errorf("without a key, admitted %q, and asked for %+v", plain.admitted, plain.asked)
	}
	full := &backend{keys: &kept{}, extra: withKey("k"), full: fault.New(fault.Overloaded, "too many")}
	status, header, _ := full.send(t, "POST", checkOutPath, checkOutBody)
	if status != http.StatusServiceUnavailable || header.Get(fault.Header) != "OVERLOADED" ||
		full.asked.ItemBarcode != "" {
		t.Errorf("without a place, answered %d %s and asked for %+v", status, header.Get(fault.Header), full.asked)
	}
}

func TestCheckOut_ReadsTheLoanFirstAfterATakeOver(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{true, false} {
		k := &kept{taken: true}
		b := &backend{keys: k, committed: committed, extra: withKey("k")}
		status, header, body := b.send(t, "POST", checkOutPath, checkOutBody)
		if status != http.StatusCreated || body != shownLoan || header.Get("Location") != "/circulation/loans/"+loanID {
			t.Errorf("committed is %t: answered %d %s", committed, status, body)
		}
		if lent := b.lease.LoanID != ""; b.sought != loanID || lent == committed {
			t.Errorf("committed is %t: sought %q, then lent: %t", committed, b.sought, lent)
		}
	}
}

func TestCheckOut_RefusesMalformedKeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		keys []string
		says string
	}{
		"empty":           {[]string{""}, "allowed are 1 to 255 printable characters"},
		"too long":        {[]string{strings.Repeat("é", 256)}, "allowed are 1 to 255 printable characters"},
		"not printable":   {[]string{"a\tb"}, "allowed are 1 to 255 printable characters"},
		"not UTF-8":       {[]string{"a\xff"}, "allowed are 1 to 255 printable characters"},
		"two of the same": {[]string{"a", "a"}, "was sent 2 times"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{keys: &kept{}, extra: withKey(tt.keys...)}
			status, _, body := b.send(t, "POST", checkOutPath, checkOutBody)
			if status != http.StatusBadRequest || !strings.Contains(body, tt.says) || b.asked.ItemBarcode != "" {
				t.Errorf("got %d %s, want 400: %s", status, body, tt.says)
			}
		})
	}
	b := &backend{keys: &kept{}, extra: withKey(strings.Repeat("é", 255))}
	if status, _, body := b.send(t, "POST", checkOutPath, checkOutBody); status != http.StatusCreated {
		t.Errorf("a key of 255 characters: got %d %s", status, body)
	}
}

func TestCheckOut_RefusesAReusedKey(t *testing.T) {
	t.Parallel()
	b := &backend{keys: &kept{err: fault.New(fault.KeyReused, "It was used for another body")}, extra: withKey("k")}
	status, header, body := b.send(t, "POST", checkOutPath, checkOutBody)
	if status != 422 || header.Get(fault.Header) != "IDEMPOTENCY_KEY_REUSED" ||
		!strings.Contains(body, `"code":"IDEMPOTENCY_KEY_REUSED"`) || b.asked.ItemBarcode != "" {
		t.Errorf("got %d %s", status, body)
	}
}
