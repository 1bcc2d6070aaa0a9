// Package span adds spans to the trace of a request. It does nothing unless that trace is recorded.
// Spans name what is done and the code of a fault: no patron, no text of a caller.
package span

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"checkoutlock/schemas/fault"
)

// Scope names the spans' tracer.
const Scope = "checkoutlock"

var nothing = func(*error) {}

// IsRecorded reports whether ctx has a span that is recorded.
func IsRecorded(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Start begins a span in that of ctx. end ends it, with the error that it points to.
func Start(ctx context.Context, name string) (inner context.Context, end func(*error)) {
	return start(ctx, name)
}

// Add adds a span that began then and ends now.
func Add(ctx context.Context, name string, began time.Time, err error) {
	_, end := start(ctx, name, trace.WithTimestamp(began))
	end(&err)
}

func start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, func(*error)) {
	outer := trace.SpanFromContext(ctx)
	if !outer.IsRecording() {
		return ctx, nothing
	}
	ctx, s := outer.TracerProvider().Tracer(Scope).Start(ctx, name, options...)
	return ctx, func(err *error) {
		if *err != nil {
			s.SetStatus(codes.Error, string(fault.CodeOf(*err)))
		}
		s.End()
	}
}

// Inject writes the span of ctx into the headers of a call.
func Inject(ctx context.Context, h http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// Extract returns ctx with the caller's span in the headers of a call.
func Extract(ctx context.Context, h http.Header) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
}
