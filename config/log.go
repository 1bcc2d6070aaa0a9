package config

import (
	"context"
	"log/slog"

	"checkoutlock/schemas/call"
	"checkoutlock/schemas/tenant"
)

// callHandler adds the request id and the tenant of the context to each line.
type callHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h callHandler) Handle(ctx context.Context, r slog.Record) error {
	if id := call.FromContext(ctx).RequestID; id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	if id, err := tenant.FromContext(ctx); err == nil {
		r.AddAttrs(slog.String("tenant", id.String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h callHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return callHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h callHandler) WithGroup(name string) slog.Handler {
	return callHandler{h.Handler.WithGroup(name)}
}
