package storageclient

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestClient_SendsAPostOnceAlthoughItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	tests := map[string]http.HandlerFunc{
		"before the answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"within the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"loan":`)
		},
	}
	for name, lose := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int32
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					answer(w, 200, "", `{"id":"`+someID+`"}`)
					return
				}
				posts.Add(1)
				lose(w, r)
			})
			ctx := inTenant(t, "diku")
			if _, err := c.CommittedLoan(ctx, someID); err != nil { // so that the POST goes over a kept connection
				t.Fatal(err)
			}
			_, err := c.CheckOut(ctx, schemas.CheckOut{Loan: json.RawMessage(`{}`)})
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("got %v, want %s", err, fault.Unavailable)
			}
			if posts.Load() != 1 {
				t.Errorf("the commit was sent %d times, want once", posts.Load())
			}
		})
	}
}

func TestClient_RepeatsAReleaseOverADeadConnection(t *testing.T) {
	t.Parallel()
	var kept atomic.Value
	var died atomic.Bool
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Values("Idempotency-Key") != nil {
			t.Error("the transport's mark was sent")
		}
		if r.Method == http.MethodGet {
			kept.Store(r.RemoteAddr)
			answer(w, 200, "", `{"id":"`+someID+`"}`)
			return
		}
		if r.RemoteAddr == kept.Load() && died.CompareAndSwap(false, true) {
			panic(http.ErrAbortHandler)
		}
		answer(w, 204, "", "")
	})
	ctx := inTenant(t, "diku")
	for range 20 { // a transport in a hurry does not keep every connection
		if _, err := c.CommittedLoan(ctx, someID); err != nil {
			t.Fatal(err)
		}
		if err := c.Release(ctx, someID); err != nil {
			t.Errorf("got %v, want the lock released at the second try", err)
		}
		if died.Load() {
			return
		}
	}
	t.Error("no release came over a kept connection")
}

// A deletion that is sent again may have happened the first time.
func TestClient_ADeletionWithALostAnswerHasHappened(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			answer(w, 200, "", `{"id":"`+someID+`"}`)
		case sent.Add(1) == 1:
			panic(http.ErrAbortHandler)
		default:
			answer(w, 404, fault.NotFound, "Not found")
		}
	})
	ctx := inTenant(t, "diku")
	if _, err := c.Loan(ctx, someID); err != nil { // so that the DELETE goes over a kept connection
		t.Fatal(err)
	}
	if err := c.DeleteLoan(ctx, someID); err != nil || sent.Load() != 2 {
		t.Errorf("got %v after %d calls, want the loan deleted by the first of two", err, sent.Load())
	}
	if err := c.DeleteLoan(ctx, someID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another deletion: got %v, want %s", err, fault.NotFound)
	}
}

// A server that refuses a body answers before it has read all of it, and then closes the connection.
func TestClient_ReadsTheRefusalOfABodyThatIsTooLarge(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusRequestEntityTooLarge, fault.TooLarge, "")
	})
	long := strings.Repeat("9", 16<<20) // more than the buffers of a connection hold
	r := send("reporting", http.MethodPost, "/reports", long, http.StatusNoContent)
	r.timeout = time.Minute // a slow host writes it in that time
	for range 2 {
		err := c.run(inTenant(t, "diku"), r)
		if !fault.Is(err, fault.TooLarge) {
			t.Errorf("got %v, want %s", err, fault.TooLarge)
		}
	}
}
