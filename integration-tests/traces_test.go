package integration_test

import (
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"checkoutlock/integration-tests/stack"
)

// spans are what an OTLP collector has received.
type spans struct {
	*httptest.Server

	mu  sync.Mutex
	all []*trace.Span
}

func collectSpans(t *testing.T) *spans {
	t.Helper()
	s := &spans{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
			t.Errorf("the collector got %s with %d bytes, %v", r.URL.Path, len(body), err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, of := range sent.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				s.all = append(s.all, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// ofTrace returns the spans of a trace by name.
func (s *spans) ofTrace(id string) map[string]*trace.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]*trace.Span{}
	for _, one := range s.all {
		if hex.EncodeToString(one.GetTraceId()) == id {
			found[one.GetName()] = one
		}
	}
	return found
}

const sampledTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

// lendTraced lends to a new patron in a trace, and returns the texts that name the patron.
func lendTraced(t *testing.T, p *pair) []string {
	t.Helper()
	id, barcode := p.addPatron(t)
	c := newClient(p.Circulations[0], p.Storage.Tenant)
	c.Header = http.Header{"Traceparent": {"00-" + sampledTrace + "-00f067aa0ba902b7-01"}}
	body := p.newCheckOut(p.addBooks(t, 1)[0], barcode)
	readObject(t, callEndpoint(t, c, http.MethodPost, checkOutPath, body), http.StatusCreated)
	return []string{id, barcode}
}

func TestTraces_FollowACheckOutThroughBothServices(t *testing.T) {
	t.Parallel()
	sent := collectSpans(t)
	settings := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + sent.URL, "OTEL_TRACES_SAMPLER_ARG=0"}
	p := startPair(t, stack.Options{StorageEnv: settings, CirculationEnv: append(settings, shortWait...)}, 1)
	patron := lendTraced(t, p)

	// From the outside to the inside.
	parents := [][2]string{
		{"wait for admission", "POST /circulation/check-out-by-barcode"},
		{"commit", "POST /circulation/check-out-by-barcode"},
		{"call POST /loan-storage/check-outs", "commit"},
		{"POST /loan-storage/check-outs", "call POST /loan-storage/check-outs"},
		{"wait for the lock", "POST /loan-storage/check-outs"},
		{"committing a check-out", "POST /loan-storage/check-outs"},
		{"INSERT loan", "committing a check-out"},
		{"COMMIT", "committing a check-out"},
	}
	var found map[string]*trace.Span
	defer func() {
		if t.Failed() {
			t.Logf("found %v", slices.Sorted(maps.Keys(found)))
		}
	}()
	waitUntil(t, patience, "the spans of the check-out", func() bool {
		found = sent.ofTrace(sampledTrace)
		return !slices.ContainsFunc(parents, func(pair [2]string) bool { return found[pair[0]] == nil })
	})
	for _, pair := range parents {
		if inner, outer := found[pair[0]], found[pair[1]]; string(inner.GetParentSpanId()) != string(outer.GetSpanId()) {
			t.Errorf("%s is no part of %s", pair[0], pair[1])
		}
	}
	sent.mu.Lock()
	defer sent.mu.Unlock()
	for _, one := range sent.all {
		text := one.String()
		for _, secret := range patron {
			if strings.Contains(text, secret) {
				t.Errorf("a span names the patron: %s", text)
			}
		}
		if got := hex.EncodeToString(one.GetTraceId()); got != sampledTrace {
			t.Errorf("%s is recorded in %s, although the ratio is 0", one.GetName(), got)
		}
	}
}
