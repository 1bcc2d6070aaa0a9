package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"checkoutlock/config"
)

const (
	patronID = "77477611-ab44-4082-a0d8-42f7acdfde11"
	maskedID = "****de11"
)

// logLine returns the line that write logs, as text and decoded.
func logLine(t *testing.T, write func(*slog.Logger)) (string, map[string]any) {
	t.Helper()
	var out bytes.Buffer
	write(config.Log{Level: "debug"}.New(&out, "circulation"))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("the line %q is no JSON object: %v", out.String(), err)
	}
	return out.String(), line
}

func TestLog_MasksIDsInTexts(t *testing.T) {
	t.Parallel()
	cause := errors.New("GET /automated-patron-blocks/" + patronID + ": refused")
	tests := map[string]struct {
		attr slog.Attr
		want string
	}{
		"an error": {slog.Any("err", cause), "GET /automated-patron-blocks/" + maskedID + ": refused"},
		"a wrapped error": {
			slog.Any("err", fmt.Errorf("reading: %w", cause)), "reading: GET /automated-patron-blocks/" + maskedID + ": refused",
		},
		"a text":              {slog.String("why", "the patron "+patronID), "the patron " + maskedID},
		"an id that is whole": {slog.String("user", patronID), maskedID},
		"an id in capitals":   {slog.String("why", strings.ToUpper(patronID)), "****DE11"},
		"two ids":             {slog.String("why", patronID+"/"+patronID), maskedID + "/" + maskedID},
		"an id that is cut off": {
			slog.String("why", strings.Repeat("x", 970)+" "+patronID), strings.Repeat("x", 970) + " … (1007 characters)",
		},
		"a list": {slog.Any("ids", []string{patronID}), `["` + maskedID + `"]`},
		"a query string": {
			slog.String("err", "GET /users?query=barcode%3D%3D%2221234%22&limit=1 failed"), "GET /users?… failed",
		},
		"a question": {slog.String("why", "Is it there? No"), "Is it there? No"},
		"a name": {
			slog.String("why", "Loan policy 4 could not be found"), "Loan policy 4 could not be found",
		},
	}
	for _, key := range []string{
		"item", "loan_id", "check_in_id", "change_id", "lock_id", "claim_id", "policy_id", "request_id",
		"lock_okapi_request_id", "by_id", "job",
	} {
		tests["no patron's: "+key] = struct {
			attr slog.Attr
			want string
		}{slog.String(key, patronID), patronID}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, write := range map[string]func(*slog.Logger){
				"with the line":    func(l *slog.Logger) { l.LogAttrs(context.Background(), slog.LevelInfo, "m", tt.attr) },
				"with the logger":  func(l *slog.Logger) { slog.New(l.Handler().WithAttrs([]slog.Attr{tt.attr})).Info("m") },
				"as a LogValuer":   func(l *slog.Logger) { l.Info("m", tt.attr.Key, valuer{tt.attr.Value}) },
				"within the group": func(l *slog.Logger) { l.Info("m", slog.GroupAttrs("g", tt.attr)) },
			} {
				_, line := logLine(t, write)
				if g, ok := line["g"].(map[string]any); ok {
					line = g
				}
				if got := line[tt.attr.Key]; got != tt.want {
					t.Errorf("%s: got %q, want %q", how, got, tt.want)
				}
			}
		})
	}
}

// valuer is a value that is made when it is logged.
type valuer struct{ value slog.Value }

func (v valuer) LogValue() slog.Value { return v.value }

func TestLog_MasksIDsInMessages(t *testing.T) {
	t.Parallel()
	if text, line := logLine(t, func(l *slog.Logger) { l.Info("patron " + patronID) }); line["msg"] != "patron "+maskedID {
		t.Errorf("logged %s", text)
	}
}

func TestLog_BoundsEveryValue(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("ä", 800_000)
	const most = 7000 // bytes: at most six for each character, and the rest of the line
	for name, attr := range map[string]slog.Attr{
		"a text":            slog.String("why", huge),
		"an item's barcode": slog.String("item", huge),
		"an error":          slog.Any("err", errors.New(huge)),
		"a list":            slog.Any("list", []string{huge}),
		"no UTF-8":          slog.String("why", strings.Repeat("\xff", 800_000)),
		"only digits":       slog.String("why", strings.Repeat("1", 800_000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, line := logLine(t, func(l *slog.Logger) { l.LogAttrs(context.Background(), slog.LevelInfo, "m", attr) })
			if len(text) > most {
				t.Errorf("the line has %d bytes", len(text))
			}
			if got, _ := line[attr.Key].(string); !strings.Contains(got, "… (8000") {
				t.Errorf("%.20q does not end with its length: %q", got, got[max(0, len(got)-40):])
			}
		})
	}
	if text, _ := logLine(t, func(l *slog.Logger) { l.Info(huge) }); len(text) > most {
		t.Errorf("the line of a huge message has %d bytes", len(text))
	}
}

func TestLog_KeepsStacksLongEnough(t *testing.T) {
	t.Parallel()
	stack := strings.Repeat("x", 4<<10)
	for _, key := range []string{"stack", "output"} {
		if _, line := logLine(t, func(l *slog.Logger) { l.Error("panic", key, stack) }); line[key] != stack {
			t.Errorf("%s of %d bytes was cut", key, len(stack))
		}
	}
}

func TestLog_KeepsOtherValues(t *testing.T) {
	t.Parallel()
	text, line := logLine(t, func(l *slog.Logger) { l.Warn("m", "n", 7, "on", true, "none", nil, "list", []int{1, 2}) })
	if line["level"] != "WARN" || line["n"] != 7.0 || line["on"] != true || line["none"] != nil ||
		!strings.Contains(text, `"list":[1,2]`) {
		t.Errorf("logged %s", text)
	}
}

func BenchmarkLog(b *testing.B) {
	log := config.Log{Level: "info"}.New(io.Discard, "circulation")
	for b.Loop() {
		log.LogAttrs(context.Background(), slog.LevelInfo, "check-out", slog.String("outcome", "lent"),
			slog.String("patron", maskedID),
			slog.String("item", "21234567890123"), slog.Float64("took_ms", 3.7))
	}
}

func TestLog_NamesTheTraceOfItsContext(t *testing.T) {
	t.Parallel()
	id := trace.TraceID{0x4b, 0xf9}
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: trace.SpanID{1},
	}))
	if _, line := logLine(t, func(log *slog.Logger) { log.InfoContext(ctx, "any") }); line["trace_id"] != id.String() {
		t.Errorf("in a trace: got %v, want its id", line)
	}
	text, _ := logLine(t, func(log *slog.Logger) { log.InfoContext(t.Context(), "any") })
	if strings.Contains(text, "trace") || strings.Contains(text, "request_id") || strings.Contains(text, "tenant") {
		t.Errorf("without a trace and a call: got %s", text)
	}
}

// A warning that names another cause stays one, as does each warning of a caller who waits.
func TestLog_DoesNotWarnOfCallersThatLeft(t *testing.T) {
	t.Parallel()
	left, cancel := context.WithCancel(t.Context())
	cancel()
	canceled := fmt.Errorf("GET /users: %w", context.Canceled)
	tests := map[string]struct {
		level string // of the log
		waits bool
		err   error
		want  string
	}{
		"the caller left":                       {level: "debug", err: canceled, want: `"DEBUG"`},
		"the caller left, at level info":        {level: "info", err: canceled, want: ""},
		"the caller left, the call was refused": {level: "info", err: errors.New("refused"), want: `"WARN"`},
		"the caller waits":                      {level: "info", waits: true, err: canceled, want: `"WARN"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := left
			if tt.waits {
				ctx = t.Context()
			}
			var out bytes.Buffer
			config.Log{Level: tt.level}.New(&out, "circulation").WarnContext(ctx, "checked in", "err", tt.err)
			if got := out.String(); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("logged %q, want level %q", got, tt.want)
			}
		})
	}
}

func TestTraces_Validate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		traces config.Traces
		want   string // part of the error; empty is none
	}{
		{traces: config.Traces{}},
		{traces: config.Traces{Endpoint: "https://collector.example.org:4318/otlp", Ratio: 1}},
		{traces: config.Traces{Endpoint: "collector:4318"}, want: "allowed: a URL without a password, such as"},
		{traces: config.Traces{Endpoint: "grpc://collector:4317"}, want: "allowed: a URL without a password, such as"},
		{traces: config.Traces{Endpoint: "http://127.0.0.1:4318"}},
		{traces: config.Traces{Endpoint: "http://[::1"}, want: "allowed: a URL without a password, such as"},
		{traces: config.Traces{Endpoint: "http://u:p@collector:4318"}, want: "allowed: a URL without a password, such as"},
		{traces: config.Traces{Endpoint: "http://"}, want: "allowed: a URL without a password, such as"},
		{traces: config.Traces{Ratio: 1.5}, want: "OTEL_TRACES_SAMPLER_ARG is 1.5, allowed: 0 to 1"},
		{traces: config.Traces{Ratio: math.NaN()}, want: "OTEL_TRACES_SAMPLER_ARG is NaN"},
	} {
		err := tt.traces.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.traces, err, tt.want)
		}
	}
}

// The line of a change is written at each level, so that the log says why warnings end.
func TestSetLevel_IsLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := config.Log{Level: "info"}.New(&out, "circulation")
	for _, level := range []string{"error", "info"} {
		out.Reset()
		if err := config.SetLevel(t.Context(), log, level); err != nil || config.LevelOf(log) != level {
			t.Fatalf("got %v, level %s, want %s", err, config.LevelOf(log), level)
		}
		if want := `"msg":"log level set","service":"circulation","to":"` + level; !strings.Contains(out.String(), want) {
			t.Errorf("logged %q, want %s", &out, want)
		}
	}
	log.Warn("x")
	if !strings.Contains(out.String(), `"msg":"x"`) {
		t.Error("no warning is logged at the level info")
	}
}
