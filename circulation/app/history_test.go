package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// recording is an empty storage that keeps the history and counts calls.
type recording struct {
	mu    sync.Mutex
	past  []schemas.PastCheckOut
	from  []string       // tenants and instances
	calls map[string]int // by path
}

func (s *recording) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != "/check-out-history-storage/check-outs" {
		s.calls[r.URL.Path]++
		empty(w, r)
		return
	}
	var report schemas.CheckOutReport
	if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.past = append(s.past, report.CheckOuts...)
	s.from = append(s.from, r.Header.Get(okapi.TenantHeader)+" "+r.Header.Get(schemas.HolderHeader))
	w.WriteHeader(http.StatusNoContent)
}

func TestApp_ReportsTheHistoryBeforeTheStop(t *testing.T) {
	t.Parallel()
	storage := &recording{calls: map[string]int{}}
	t.Run("a check-out", func(t *testing.T) { // the service stops at its end
		url := start(t, storage)
		send(t, "POST", url+"/circulation/check-out-by-barcode",
			`{"itemBarcode":"1","userBarcode":"2","servicePointId":"3a40852d-49fd-4df2-a1f9-6e2641a6e91f"}`)
		_, metrics := send(t, "GET", url+"/metrics", "")
		for _, want := range []string{"\ncirculation_lock_waiting 0\n", "\ncirculation_history_dropped_total 0\n"} {
			if !strings.Contains(metrics, want) {
				t.Errorf("%s is missing in the metrics", want)
			}
		}
	})
	storage.mu.Lock()
	defer storage.mu.Unlock()
	if len(storage.past) != 1 || !strings.HasPrefix(storage.from[0], "diku ") || len(storage.from[0]) == len("diku ") {
		t.Fatalf("reported %+v from %q", storage.past, storage.from)
	}
	if got := storage.past[0]; got.Outcome != "refused" || got.Code != "USER_BARCODE_NOT_FOUND" ||
		got.ItemBarcode != "1" || got.UserBarcode != "2" ||
		got.Reason != "Could not find user with matching barcode; No item with barcode 1 could be found" ||
		got.RequestID == "" {
		t.Errorf("reported %+v", got)
	}
	for path, n := range storage.calls {
		if n != 1 {
			t.Errorf("the check-out asked for %s %d times, want once", path, n)
		}
	}
}
