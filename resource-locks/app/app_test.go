package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/config"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/resource-locks/app"
	"checkoutlock/web"
)

// load reads settings of a test, with all fronts on free ports.
func load(t *testing.T, environ ...string) (app.Config, error) {
	t.Helper()
	cfg := app.DefaultConfig()
	err := config.Load(&cfg, append([]string{
		"DATABASE_URL=" + testserver.URL(t), "PORT=0", "STAFF_AUTH=none", "LOCKET_ADDR=127.0.0.1:0", "LOCKET_PLAINTEXT=true",
		"LOCKTOPUS_ADDR=127.0.0.1:0", "SUNBIRD_ADDR=127.0.0.1:0", "SUNBIRD_AUTH=header", "MUTEX_ADDR=127.0.0.1:0",
	}, environ...))
	return cfg, err
}

// start runs an instance until the test ends.
func start(t *testing.T, environ ...string) *web.Service {
	t.Helper()
	cfg, err := load(t, environ...)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}

// call makes a request and returns its status and body.
func call(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestApp_ServesAllFrontsAndOperators(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, front := range []string{"operators", "locket", "locktopus", "sunbird", "mutex"} {
		if a.URL(front) == "" {
			t.Errorf("%s is off", front)
		}
	}
	uid := uuid.NewString()
	if status, body := call(t, "POST", a.URL("mutex")+"/api/lock/"+uid+"/", "", "X-User-Id", "7"); status != 200 {
		t.Errorf("the mutex answers %d %s", status, body)
	}
	if status, page := call(t, "GET", a.URL("operators")+"/locks/", ""); status != 200 || !strings.Contains(page, uid) {
		t.Errorf("the page answers %d without the lock", status)
	}
	if status, body := call(t, "GET", a.URL("operators")+"/admin/health/ready", ""); status != 200 {
		t.Errorf("not ready: %d %s", status, body)
	}
	_, metrics := call(t, "GET", a.URL("operators")+"/metrics", "")
	for _, line := range []string{
		`resource_locks_events_total{event="granted",space="mutex"} 1`, `resource_locks_held{space="mutex"}`,
		`resource_locks_held{space="sunbird"}`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics have no %s", line)
		}
	}
}

func TestApp_LocksOutliveIt(t *testing.T) {
	t.Parallel()
	uid := uuid.NewString()
	t.Run("the first instance", func(t *testing.T) {
		if status, _ := call(t, "POST", start(t).URL("mutex")+"/api/lock/"+uid+"/", "", "X-User-Id", "7"); status != 200 {
			t.Fatalf("got %d", status)
		}
	})
	status, body := call(t, "POST", start(t).URL("mutex")+"/api/lock/"+uid+"/", "", "X-User-Id", "8")
	if status != 423 || !strings.Contains(body, `"user_id":7`) {
		t.Errorf("got %d %s, want 423 with the holder", status, body)
	}
}

// logLines gets the lines of a log, and has room for all of them.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// The standby may be away, or the server an old primary that a failover left running.
func TestNew_WaitsUntilCommitsAreConfirmed(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, nil)
	cfg, err := load(t, "DATABASE_URL="+server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Migrate(t.Context(), cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	exec := func(statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), server.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, statement := range statements {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	exec(`ALTER SYSTEM SET synchronous_standby_names = 'gone'`)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines, ended := make(logLines, 1000), make(chan error, 1)
	go func() {
		a, err := app.New(t.Context(), cfg, slog.New(slog.NewTextHandler(lines, nil)))
		if err == nil {
			err = a.Close(t.Context())
		}
		ended <- err
	}()
	for line := ""; !strings.Contains(line, "waiting for the database"); {
		select {
		case line = <-lines:
		case err := <-ended:
			t.Fatalf("got %v, want it to wait", err)
		}
	}
	exec(`ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestApp_FrontsAreOffWithoutAnAddress(t *testing.T) {
	t.Parallel()
	a := start(t, "LOCKET_ADDR=", "LOCKTOPUS_ADDR=", "SUNBIRD_ADDR=", "MUTEX_ADDR=", "LOCKET_PLAINTEXT=false")
	for _, front := range []string{"locket", "locktopus", "sunbird", "mutex"} {
		if a.URL(front) != "" {
			t.Errorf("%s is at %s", front, a.URL(front))
		}
	}
}

func TestApp_PortsStayOpenForTheDrainDelay(t *testing.T) {
	t.Parallel()
	const delay = time.Second
	cfg, err := load(t, "DRAIN_DELAY="+delay.String())
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	for _, front := range []string{"operators", "locktopus", "sunbird", "mutex"} { // they serve from then on
		call(t, "GET", a.URL(front)+"/", "")
	}
	stopped := time.Now()
	stop()
	var all sync.WaitGroup // subtests would begin when other tests have ended, long after the delay
	for _, front := range []string{"operators", "locket", "locktopus", "sunbird", "mutex"} {
		all.Go(func() {
			address := strings.TrimPrefix(a.URL(front), "http://")
			for tick := time.Tick(5 * time.Millisecond); ; <-tick {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
				if err != nil {
					break
				}
				_ = conn.Close()
			}
			if open := time.Since(stopped); open < delay {
				t.Errorf("%s: the port was open for %s after the signal, want %s", front, open, delay)
			}
		})
	}
	all.Wait()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestApp_NamesATakenAddress(t *testing.T) {
	t.Parallel()
	taken := strings.TrimPrefix(start(t).URL("operators"), "http://")
	for _, setting := range []string{"LOCKET_ADDR", "LOCKTOPUS_ADDR", "SUNBIRD_ADDR", "MUTEX_ADDR"} {
		cfg, err := load(t, setting+"="+taken)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error(), setting) {
			t.Errorf("got %v, want it to name %s", err, setting)
		}
	}
}

func TestConfig_ReportsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := load(t, "LOCKET_ADDR=0.0.0.0:1", "LOCKTOPUS_ADDR=x", "SUNBIRD_ADDR=x", "MUTEX_ADDR=x", "MUTEX_TTL=0s",
		"LOCK_SWEEP_INTERVAL=1ms", "HISTORY_RETENTION=1m", "STAFF_AUTH=maybe", "TZ=Europe/Berln")
	if err == nil {
		t.Fatal("no error")
	}
	for _, setting := range []string{
		"LOCKET_ADDR", "LOCKTOPUS_ADDR", "SUNBIRD_ADDR", "MUTEX_ADDR", "LOCK_SWEEP_INTERVAL", "HISTORY_RETENTION",
		"STAFF_AUTH", `TZ is "Europe/Berln"`,
	} {
		if !strings.Contains(err.Error(), setting) {
			t.Errorf("%s is not named: %v", setting, err)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	a := start(t)
	cfg, err := load(t)
	if err != nil {
		t.Fatal(err)
	}
	uid := uuid.NewString()
	call(t, "POST", a.URL("mutex")+"/api/lock/"+uid+"/", "", "X-User-Id", "7")
	var out bytes.Buffer
	if err := app.List(t.Context(), cfg, "mutex", &out); err != nil {
		t.Fatal(err)
	}
	var id string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, uid) {
			id = strings.Fields(line)[0]
		}
	}
	release := app.Release{Namespace: "mutex", Name: uid, ID: id, Reason: "on leave", By: "ada"}
	for _, tt := range []struct {
		name, says string
		change     func(*app.Release)
	}{
		{name: "without a reason", says: "-reason", change: func(r *app.Release) { r.Reason = "" }},
		{name: "without a namespace", says: "-namespace", change: func(r *app.Release) { r.Namespace = "" }},
		{name: "a lock and a claim", says: "-claim", change: func(r *app.Release) { r.Claim = uuid.NewString() }},
		{name: "no id", says: "UUID", change: func(r *app.Release) { r.ID = "1" }},
		{
			name: "a name that no lock has", says: "more than 255 characters",
			change: func(r *app.Release) { r.Name = strings.Repeat("n", 256) },
		},
		{name: "an id of an earlier grant", says: "no such lock", change: func(r *app.Release) { r.ID = uuid.NewString() }},
		{
			name: "a claim that is gone", says: "no such claim",
			change: func(r *app.Release) { r.ID, r.Claim = "", uuid.NewString() },
		},
	} {
		wrong := release
		tt.change(&wrong)
		if err := app.ForceRelease(t.Context(), cfg, wrong, io.Discard); err == nil ||
			!strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.says)
		}
	}
	out.Reset()
	if err := app.ForceRelease(t.Context(), cfg, release, &out); err != nil || !strings.Contains(out.String(), uid) {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if status, body := call(t, "POST", a.URL("mutex")+"/api/lock/"+uid+"/", "", "X-User-Id", "8"); status != 200 {
		t.Errorf("after the release: %d %s", status, body)
	}
}

func TestSunbird_IsWired(t *testing.T) {
	t.Parallel()
	notices := make(chan string, 1)
	webhook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		notices <- string(body)
	}))
	t.Cleanup(webhook.Close)
	a := start(t, "SUNBIRD_NOTICE_URL="+webhook.URL)
	id := uuid.NewString()
	request := `{"request":{"resourceId":"` + id +
		`","resourceType":"Content","resourceInfo":"{}","createdBy":"ann","creatorInfo":"{}"}}`
	status, body := call(t, "POST", a.URL("sunbird")+"/v1/lock/create", request, "X-Authenticated-Userid", "ann",
		"X-Device-Id", "desk")
	var answer struct{ Result struct{ LockKey string } }
	if err := json.Unmarshal([]byte(body), &answer); status != 200 || err != nil || answer.Result.LockKey == "" {
		t.Errorf("got %d %s, %v", status, body, err)
	}
	request = `{"request":{"resourceId":"` + id + `","resourceType":"Content","message":"please"}}`
	status, body = call(t, "POST", a.URL("sunbird")+"/v1/lock/request", request, "X-Authenticated-Userid", "bo")
	if status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	select {
	case notice := <-notices:
		if !strings.Contains(notice, id) {
			t.Errorf("the notice is %s", notice)
		}
	case <-time.After(time.Minute):
		t.Error("no notice was sent")
	}
}
