package app_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"checkoutlock/circulation/app"
	"checkoutlock/config"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// start runs a circulation over the storage, until the test ends.
func start(t *testing.T, storage http.Handler) (url string) {
	t.Helper()
	return startWith(t, storage, nil)
}

// startWith is start with settings in the form of os.Environ.
func startWith(t *testing.T, storage http.Handler, environ []string) (url string) {
	t.Helper()
	server := httptest.NewServer(storage)
	t.Cleanup(server.Close)
	cfg := app.DefaultConfig()
	if err := config.Load(&cfg, append([]string{"PORT=0", "STORAGE_URL=" + server.URL + "/"}, environ...)); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("stopped with %v", err)
		}
	})
	return a.URL("endpoints")
}

// send returns the status and body of the answer.
func send(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(okapi.TenantHeader, "diku")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// empty is a storage without records.
func empty(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/admin/health/ready":
		_, _ = io.WriteString(w, "ready")
	case "/loan-storage/check-out-facts":
		_, _ = io.WriteString(w, `{"onLoan":false}`)
	case "/circulation-settings-storage/circulation-settings":
		_, _ = io.WriteString(w, `{"circulationSettings":[]}`)
	default:
		w.Header().Set(fault.Header, string(fault.NotFound))
		w.WriteHeader(http.StatusNotFound)
	}
}

func TestApp_CountsCheckOuts(t *testing.T) {
	t.Parallel()
	url := start(t, http.HandlerFunc(empty))
	status, body := send(t, "POST", url+"/circulation/check-out-by-barcode",
		`{"itemBarcode":"1","userBarcode":"2","servicePointId":"3a40852d-49fd-4df2-a1f9-6e2641a6e91f"}`)
	if status != http.StatusUnprocessableEntity || !strings.Contains(body, "USER_BARCODE_NOT_FOUND") ||
		!strings.Contains(body, "No item with barcode 1 could be found") {
		t.Errorf("got %d %s", status, body)
	}
	_, metrics := send(t, "GET", url+"/metrics", "")
	for _, want := range []string{
		`circulation_checkouts_total{outcome="refused"} 1`,
		`circulation_checkouts_total{outcome="lent"} 0`,
		`circulation_checkouts_total{outcome="overloaded"} 0`,
		`circulation_admission_refused_total{reason="wait_over"} 0`,
		`circulation_admission_admitted 0`,
		`circulation_admission_waiting 0`,
		`circulation_admission_room 960`,
		`circulation_admission_wait_seconds_count{result="admitted"} 1`,
		`circulation_storage_call_seconds_count{method="POST",route="/loan-storage/check-out-facts",status="200"} 1`,
		`http_requests_total{code="INVALID",method="POST",route="/circulation/check-out-by-barcode",status="422"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is missing in the metrics", want)
		}
	}
}

func TestApp_IsReadyWhenStorageIs(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	url := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		empty(w, r)
	}))
	if status, body := send(t, "GET", url+"/admin/health/ready", ""); status != http.StatusServiceUnavailable {
		t.Errorf("storage is not ready: got %d %s", status, body)
	}
	if status, _ := send(t, "GET", url+"/admin/health", ""); status != http.StatusOK {
		t.Errorf("got %d, want it alive without storage", status)
	}
	up.Store(true)
	if status, body := send(t, "GET", url+"/admin/health/ready", ""); status != http.StatusOK {
		t.Errorf("storage is ready: got %d %s", status, body)
	}
}

func TestNew_ReportsAnAddressInUse(t *testing.T) {
	t.Parallel()
	url := start(t, http.HandlerFunc(empty))
	cfg := app.DefaultConfig()
	if err := config.Load(&cfg, []string{"PORT=" + url[strings.LastIndex(url, ":")+1:]}); err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "PORT") {
		t.Errorf("got %v, want it to name PORT", err)
	}
}
