package span_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/span"
)

func TestStart_CostsNothingWithoutATrace(t *testing.T) {
	ctx, header := context.WithValue(t.Context(), http.NoBody, "any"), http.Header{}
	var err error
	allocated := testing.AllocsPerRun(100, func() {
		inner, end := span.Start(ctx, "wait for the lock")
		span.Inject(inner, header)
		end(&err)
	})
	span.Add(ctx, "INSERT loan", time.Now(), err)
	if allocated > 0 || len(header) > 0 || span.IsRecorded(ctx) {
		t.Errorf("got %v allocations and the headers %v, want none", allocated, header)
	}
}

// recorded is a span that is recorded. It lists itself and those in it when they end.
type recorded struct {
	noop.Span
	ended *[]string
	text  string
}

func (*recorded) IsRecording() bool                   { return true }
func (r *recorded) SetStatus(c codes.Code, of string) { r.text += fmt.Sprintf(" %s %s", c, of) }

func (r *recorded) End(...trace.SpanEndOption) { *r.ended = append(*r.ended, r.text) }

func (r *recorded) TracerProvider() trace.TracerProvider { return provider{ended: r.ended} }

func (p provider) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{ended: p.ended} }

type provider struct {
	noop.TracerProvider
	ended *[]string
}

type tracer struct {
	noop.Tracer
	ended *[]string
}

func (t tracer) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &recorded{ended: t.ended, text: name}
	return trace.ContextWithSpan(ctx, s), s
}

// The status of a span is the code of the fault alone: its text may have a patron's barcode.
func TestStart_RecordsTheCodeOfAFault(t *testing.T) {
	t.Parallel()
	var ended []string
	ctx := trace.ContextWithSpan(t.Context(), &recorded{ended: &ended})
	inner, end := span.Start(ctx, "lend")
	span.Add(inner, "INSERT loan", time.Now(), errors.New("21234567"))
	err := error(fault.New(fault.Unavailable, "No connection for 21234567"))
	end(&err)
	span.Add(ctx, "COMMIT", time.Now(), nil)
	want := []string{"INSERT loan Error " + string(fault.Internal), "lend Error " + string(fault.Unavailable), "COMMIT"}
	if !slices.Equal(ended, want) || !span.IsRecorded(inner) {
		t.Errorf("got %q, want %q", ended, want)
	}
}

func TestInject_NamesTheSpan(t *testing.T) {
	t.Parallel()
	sent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	header := http.Header{}
	span.Inject(trace.ContextWithSpanContext(t.Context(), sent), header)
	got := trace.SpanContextFromContext(span.Extract(t.Context(), header))
	if got.TraceID() != sent.TraceID() || got.SpanID() != sent.SpanID() {
		t.Errorf("%v reads as %v, want %v", header, got, sent)
	}
}
