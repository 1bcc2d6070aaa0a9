package sink_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/sink"
	"checkoutlock/config"
	"checkoutlock/config/resolver/resolvertest"
)

func TestPoster(t *testing.T) {
	t.Parallel()
	id := pgtest.Tenant(t)
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.Join([]string{
			r.Method, r.Header.Get("Content-Type"), r.Header.Get("X-Okapi-Tenant"),
			r.Header.Get("X-Event-Topic"), r.Header.Get("X-Event-Key"), string(body),
		}, " "))
		switch string(body) {
		case "refused":
			w.WriteHeader(http.StatusBadRequest)
		case "moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	to := openSink(t, sink.Settings{URL: server.URL + "/events", Environment: "e", Retention: time.Hour})
	if err := to.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	var messages []events.Message
	for _, body := range []string{"received", "refused", "moved"} {
		messages = append(messages, events.Message{Topic: "topic", Key: "key", Tenant: id, Value: []byte(body)})
	}
	errs := to.Send(t.Context(), messages)
	if errs[0] != nil || !errors.Is(errs[1], events.ErrRefused) ||
		errs[2] == nil || errors.Is(errs[2], events.ErrRefused) {
		t.Errorf("got %v, want the second one refused for itself, and the third one failed", errs)
	}
	slices.Sort(got)
	want := "POST application/json " + id.String() + " topic key "
	if !slices.Equal(got, []string{want + "moved", want + "received", want + "refused"}) {
		t.Errorf("got %q", got)
	}
	const noListener = "http://127.0.0.1:1/"
	closed := openSink(t, sink.Settings{URL: noListener, Environment: "e", Retention: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := closed.Ping(ctx); err == nil {
		t.Error("the closed address answers")
	}
	if errs := closed.Send(ctx, messages[:1]); errs[0] == nil {
		t.Error("the closed address receives")
	}
}

// The network may reach the address through a proxy alone.
func TestPoster_ThroughAProxy(t *testing.T) {
	t.Parallel()
	received := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		received <- r.URL.String()
	}))
	t.Cleanup(server.Close)
	proxy, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	const address = "http://reader.invalid/events"
	to := openSink(t, sink.Settings{URL: address, Environment: "e", Retention: time.Hour})
	sink.UseProxy(to, proxy)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	message := events.Message{Topic: "topic", Tenant: pgtest.Tenant(t), Value: []byte("{}")}
	if errs := to.Send(ctx, []events.Message{message}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if got := <-received; got != address {
		t.Errorf("the proxy got a request for %s, want %s", got, address)
	}
	if err := to.Ping(ctx); err != nil {
		t.Errorf("the proxy is not reached: %v", err)
	}
	server.Close()
	if err := to.Ping(ctx); err == nil {
		t.Error("the closed proxy is reached")
	}
}

func TestSettings_NameAllThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		environ []string
		says    []string // none is right
	}{
		"nowhere": {environ: nil, says: nil},
		"kafka": {environ: []string{
			"EVENTS_BROKERS=a:9092,b:9093", "EVENTS_TLS=true", "EVENTS_SASL=SCRAM-SHA-512", "EVENTS_USER=u",
			"EVENTS_PASSWORD=p", "EVENTS_PUBSUB=mod-pubsub-2.20.0",
		}, says: nil},
		"an address": {environ: []string{"EVENTS_URL=https://example.org/events"}, says: nil},
		"all at once": {environ: []string{
			"EVENTS_BROKERS=kafka", "EVENTS_SASL=GSSAPI", "EVENTS_ENVIRONMENT=a/b", "EVENTS_PUBSUB=a b",
			"EVENTS_URL=ftp://x", "EVENTS_RETENTION=1m", "EVENTS_TLS=perhaps",
		}, says: []string{
			"EVENTS_BROKERS is \"kafka\"", "EVENTS_SASL is", "EVENTS_ENVIRONMENT", "EVENTS_PUBSUB", "EVENTS_URL cannot be used",
			"EVENTS_RETENTION is 1m0s, allowed: 1h to 720h", "EVENTS_TLS",
		}},
		"both ways": {
			environ: []string{"EVENTS_BROKERS=a:1", "EVENTS_URL=http://x"}, says: []string{"exclude each other"},
		},
		"a password in URL": {environ: []string{"EVENTS_URL=http://u:secret@x"}, says: []string{"without a password"}},
		"SASL without user": {
			environ: []string{"EVENTS_BROKERS=a:1", "EVENTS_SASL=PLAIN", "EVENTS_PASSWORD=p"},
			says:    []string{"EVENTS_SASL needs"},
		},
		"user without SASL": {environ: []string{"EVENTS_BROKERS=a:1", "EVENTS_USER=u"}, says: []string{"need EVENTS_SASL"}},
		"files of TLS without TLS": {
			environ: []string{"EVENTS_BROKERS=a:1", "EVENTS_TLS_CA=/none"},
			says:    []string{"EVENTS_TLS_CA cannot be read", "need EVENTS_TLS"},
		},
		"a certificate without a key": {
			environ: []string{"EVENTS_BROKERS=a:1", "EVENTS_TLS=true", "EVENTS_TLS_CERTIFICATE=/none"},
			says:    []string{"EVENTS_TLS_CERTIFICATE and EVENTS_TLS_KEY cannot be used"},
		},
		"password without SASL": {
			environ: []string{"EVENTS_BROKERS=a:1", "EVENTS_PASSWORD=p"}, says: []string{"need EVENTS_SASL"},
		},
		"SASL without password": {
			environ: []string{"EVENTS_BROKERS=a:1", "EVENTS_SASL=SCRAM-SHA-256", "EVENTS_USER=u"},
			says:    []string{"EVENTS_SASL needs"},
		},
		"SASL without broker": {
			environ: []string{"EVENTS_SASL=PLAIN", "EVENTS_USER=u", "EVENTS_PASSWORD=p"}, says: []string{"need EVENTS_BROKERS"},
		},
		"no host":             {environ: []string{"EVENTS_BROKERS=:9092"}, says: []string{"EVENTS_BROKERS is"}},
		"a blank":             {environ: []string{"EVENTS_BROKERS=a:1, b:1"}, says: []string{`EVENTS_BROKERS is " b:1"`}},
		"port 0":              {environ: []string{"EVENTS_BROKERS=a:0"}, says: []string{"EVENTS_BROKERS is"}},
		"port 70000":          {environ: []string{"EVENTS_BROKERS=a:70000"}, says: []string{"EVENTS_BROKERS is"}},
		"no such port in URL": {environ: []string{"EVENTS_URL=http://x:99999"}, says: []string{"EVENTS_URL cannot be used"}},
		"no host in URL":      {environ: []string{"EVENTS_URL=http:///events"}, says: []string{"EVENTS_URL cannot be used"}},
		"TLS without broker":  {environ: []string{"EVENTS_TLS=true"}, says: []string{"need EVENTS_BROKERS"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s sink.Settings
			err := config.Load(&s, tt.environ)
			if (err == nil) != (tt.says == nil) {
				t.Fatalf("got %v", err)
			}
			for _, text := range tt.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("got %v, want %q in it", err, text)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// A name server that is away must not keep events waiting that could be sent.
func TestPoster_PingsTheHostThatItSendsTo(t *testing.T) { //nolint:paralleltest // it replaces resolver.Default
	(&resolvertest.Server{}).ReplaceDefault(t)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	address := strings.Replace(server.URL, "127.0.0.1", "reader.test.", 1)
	to := openSink(t, sink.Settings{URL: address, Environment: "e", Retention: time.Hour})
	event := events.Message{Topic: "topic", Tenant: pgtest.Tenant(t), Value: []byte("{}")}
	if err := to.Send(t.Context(), []events.Message{event})[0]; err != nil {
		t.Error(err)
	}
	if err := to.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
