package web

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"checkoutlock/config"
	"checkoutlock/schemas/span"
)

const (
	traceInterval = time.Second     // between two reports of spans
	traceTimeout  = 5 * time.Second // of the last report
	traceWarning  = time.Minute     // between two lines about reports that fail
)

// traces sends spans of requests to a collector. nil records nothing.
type traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// openTraces returns nil without an endpoint.
func openTraces(ctx context.Context, cfg config.Traces, service string, log *slog.Logger) (*traces, error) {
	if cfg.Endpoint == "" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(strings.TrimSuffix(cfg.Endpoint, "/")+"/v1/traces"))
	if err != nil {
		return nil, err
	}
	// The library has one handler for a process. Without it, errors would be text on standard error.
	lines := sparseLines{pause: traceWarning}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if lines.allow(time.Now()) {
			log.WarnContext(ctx, "traces are not sent", "err", err)
		}
	}))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithBatchTimeout(traceInterval)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Ratio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", service), attribute.String("service.version", config.ReadBuild().Version))),
	)
	return &traces{provider, provider.Tracer(span.Scope)}, nil
}

// close sends what is left.
func (t *traces) close(log *slog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), traceTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.WarnContext(ctx, "traces are not sent", "err", err)
	}
}

// begin begins the span of a request, in that of its caller. end ends it with the answer. Probes and
// scrapes have none.
func (t *traces) begin(ctx context.Context, r *http.Request, route string) (_ context.Context, end func(status int, code string)) {
	if t == nil || strings.HasPrefix(route, "/admin/") || route == "/metrics" {
		return ctx, func(int, string) {}
	}
	method := methodOf(r.Method)
	ctx, s := t.tracer.Start(span.Extract(ctx, r.Header), method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route)))
	return ctx, func(status int, code string) {
		s.SetAttributes(attribute.Int("http.response.status_code", status), attribute.String("code", code))
		if status >= http.StatusInternalServerError {
			s.SetStatus(codes.Error, code)
		}
		s.End()
	}
}
