package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// pageStore gives n records of 1 KB, and calls after before it ends.
type pageStore struct {
	records.Store
	n     int
	after func(ctx context.Context) error
}

func (s pageStore) List(ctx context.Context, _ records.Type, _ records.Page, out records.Sink) error {
	if err := out.Begin(s.n); err != nil {
		return err
	}
	for i := range s.n {
		if err := out.Record(fmt.Appendf(nil, `{"n": %d, "ours": %q}`, i, strings.Repeat("x", 1000))); err != nil {
			return err
		}
	}
	return s.after(ctx)
}

// list asks a server with the store for all records of a collection.
func (s pageStore) list(t *testing.T, path string) (status int, body io.Reader) {
	t.Helper()
	server := httptest.NewServer(newAPI(t, httpapi.RecordRoutes(s)).handler)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path+"?limit=2147483647", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(okapi.TenantHeader, "diku")
	r.Header.Set("Accept-Encoding", "identity") // gzip would hold the beginning back
	a, err := server.Client().Do(r)
	if err != nil {
		t.Fatalf("got %v, want the beginning of the answer", err)
	}
	t.Cleanup(func() { _ = a.Body.Close() })
	return a.StatusCode, a.Body
}

func TestRecordRoutes_StreamACollection(t *testing.T) {
	t.Parallel()
	all := t
	for _, typ := range records.Types() {
		t.Run(typ.Name, func(t *testing.T) {
			t.Parallel()
			if all.Failed() {
				t.Fatal("another type failed, so this one was not tried: each one takes a minute to fail")
			}
			seen := make(chan struct{})
			store := pageStore{n: 200, after: func(ctx context.Context) error {
				select {
				case <-seen:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}}
			_, body := store.list(t, typ.Path)
			beginning := make([]byte, 1000)
			if _, err := io.ReadFull(body, beginning); err != nil {
				t.Fatal(err)
			}
			close(seen)
			rest, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			var page map[string]json.RawMessage
			if err := json.Unmarshal(append(beginning, rest...), &page); err != nil {
				t.Fatal(err)
			}
			var list []struct{ N int }
			if err := json.Unmarshal(page[typ.Collection], &list); err != nil || len(list) != 200 || list[199].N != 199 {
				t.Errorf("got %d records, %v, want 200 in order", len(list), err)
			}
		})
	}
}

func TestRecordRoutes_CutOffABrokenCollection(t *testing.T) {
	t.Parallel()
	fails := func(context.Context) error {
		return fault.Wrap(errors.New("gone"), fault.Unavailable, "PostgreSQL was lost")
	}
	t.Run("has the status of the failure when nothing was sent", func(t *testing.T) {
		t.Parallel()
		status, answer := pageStore{n: 3, after: fails}.list(t, "/users")
		if body, err := io.ReadAll(answer); status != http.StatusServiceUnavailable ||
			string(body) != "PostgreSQL was lost" || err != nil {
			t.Errorf("got %d %.200s, %v, want 503", status, body, err)
		}
	})
	t.Run("is no whole answer when a part was sent", func(t *testing.T) {
		t.Parallel()
		_, answer := pageStore{n: 1000, after: fails}.list(t, "/users")
		if body, err := io.ReadAll(answer); !errors.Is(err, io.ErrUnexpectedEOF) || json.Valid(body) {
			t.Errorf("got %d bytes, %v, want a broken answer", len(body), err)
		}
	})
}
