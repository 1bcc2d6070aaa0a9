package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/redact"
)

// callHandler adds the request id, the tenant and the trace id of the context to each line.
type callHandler struct {
	slog.Handler
	level *slog.LevelVar
}

func (h callHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && callerLeft(ctx, r) {
		if r.Level = slog.LevelDebug; !h.Enabled(ctx, r.Level) {
			return nil
		}
	}
	if id := okapi.FromContext(ctx).RequestID; id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	if id, err := okapi.TenantFrom(ctx); err == nil {
		r.AddAttrs(slog.String("tenant", id.String()))
	}
	if s := trace.SpanContextFromContext(ctx); s.HasTraceID() {
		r.AddAttrs(slog.String("trace_id", s.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// callerLeft reports whether the record's error is that the caller left. Machines that hang up would fill
// the log with warnings of what their answers lack.
func callerLeft(ctx context.Context, r slog.Record) bool {
	left := false
	if errors.Is(ctx.Err(), context.Canceled) {
		r.Attrs(func(a slog.Attr) bool {
			err, _ := a.Value.Any().(error)
			left = errors.Is(err, context.Canceled)
			return !left
		})
	}
	return left
}

func (h callHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return callHandler{h.Handler.WithAttrs(attrs), h.level}
}

func (h callHandler) WithGroup(name string) slog.Handler {
	return callHandler{h.Handler.WithGroup(name), h.level}
}

// Levels are the levels of the log, by their names in settings and requests.
var Levels = []string{"debug", "info", "warn", "error"}

// LevelOf returns the name of the level of a logger that Log.New made.
func LevelOf(log *slog.Logger) string { return strings.ToLower(levelOf(log).Level().String()) }

// SetLevel changes the level of a logger that Log.New made, and of those derived from it. name is
// one of Levels, or what LevelOf returned.
func SetLevel(ctx context.Context, log *slog.Logger, name string) error {
	var to slog.Level
	if err := to.UnmarshalText([]byte(name)); err != nil {
		return err
	}
	levelOf(log).Set(min(to, slog.LevelWarn)) // at error the line would be missing
	log.WarnContext(ctx, "log level set", "to", name)
	levelOf(log).Set(to)
	return nil
}

// levelOf returns a level without effect for a logger that Log.New did not make.
func levelOf(log *slog.Logger) *slog.LevelVar {
	if h, ok := log.Handler().(callHandler); ok {
		return h.level
	}
	return new(slog.LevelVar)
}

// Bounds of one logged value, in characters. Clients choose the length of barcodes and of
// quoted input, but not of traces.
const (
	maxValue = 1000
	maxTrace = 8000
)

// guardAttr is a slog.HandlerOptions.ReplaceAttr. It bounds each value and masks what may
// identify a patron, so that no caller of the log has to.
func guardAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		return slog.String(a.Key, guardText(a.Key, a.Value.String()))
	case slog.KindAny:
		return guardAny(a)
	default: // numbers, times and durations
		return a
	}
}

func guardAny(a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case slog.Level:
		return a
	case error:
		return slog.String(a.Key, guardText(a.Key, v.Error()))
	default:
		raw, _ := json.Marshal(v) // the log shows an error in place of the value
		if guarded := guardText(a.Key, string(raw)); guarded != string(raw) {
			return slog.String(a.Key, guarded)
		}
		return a
	}
}

func guardText(key, text string) string {
	head, length := redact.Cut(text, maxLength(key))
	if !namesRecord(key) {
		if length > 0 {
			head = cutIDPattern.ReplaceAllString(head, "")
		}
		head = hidePatrons(head)
	}
	if length > 0 {
		return fmt.Sprintf("%s… (%d characters)", head, length)
	}
	return head
}

func maxLength(key string) int {
	if key == "stack" || key == "output" {
		return maxTrace
	}
	return maxValue
}

// namesRecord reports whether the value of key is an id or a barcode that is not a
// patron's.
func namesRecord(key string) bool {
	switch key {
	case "item", "loan_id", "check_in_id", "change_id", "lock_id", "claim_id", "policy_id", "request_id", "lock_okapi_request_id", "by_id", "job":
		return true
	}
	return false
}

var (
	idPattern    = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	cutIDPattern = regexp.MustCompile(`(?i)[0-9a-f-]{1,35}$`) // at the end of a text that was cut
	queryPattern = regexp.MustCompile(`\?\S*=\S*`)
)

// hidePatrons masks every UUID, because any may be a patron's, and drops the query string of
// a URL, which may have a patron's barcode.
func hidePatrons(text string) string {
	text = queryPattern.ReplaceAllString(text, "?…")
	return idPattern.ReplaceAllStringFunc(text, redact.Mask)
}
