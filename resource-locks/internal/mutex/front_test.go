package mutex_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"checkoutlock/config"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/mutex"
	"checkoutlock/schemas/fault"
)

type quiet struct{}

func (quiet) Observe(engine.Event) {}

// server is a front over a store in memory.
type server struct {
	*mutex.Front
	store    *enginetest.Store
	registry *prometheus.Registry
	client   *http.Client
}

// startServer serves until the test ends.
func startServer(t *testing.T) *server {
	t.Helper()
	store := enginetest.NewStore()
	return startOver(t, store, store, func(h http.Handler) http.Handler { return h })
}

// startOver is startServer with locks in front of the store, and a wrapped handler.
func startOver(t *testing.T, store *enginetest.Store, locks engine.LockStore, wrap func(http.Handler) http.Handler) *server {
	t.Helper()
	transport := &http.Transport{}
	s := &server{store: store, registry: prometheus.NewRegistry(), client: &http.Client{Transport: transport}}
	front, err := mutex.New(mutex.Options{
		Settings: mutex.Settings{Addr: "127.0.0.1:0", TTL: time.Minute, UserHeader: "X-User-Id"},
		Locks:    engine.NewLocks(locks, quiet{}), Log: config.Log{}.New(io.Discard, ""), Registry: s.registry,
		Ready: func(context.Context) error { return nil }, ShutdownTimeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Front = front
	s.Handler = wrap(s.Handler)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections() // the stop waits for those without a request
		if err := errors.Join(s.Drain(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	return s
}

// send returns status and body of a request by user; an empty user sends no header.
func (s *server) send(t *testing.T, method, path, user string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		r.Header.Set("X-User-Id", user)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

func (s *server) want(t *testing.T, method, path, user string, status int, part string) {
	t.Helper()
	got, body := s.send(t, method, path, user)
	if got != status || !strings.Contains(body, part) {
		t.Errorf("%s %s by %q: got %d %s, want %d with %s", method, path, user, got, body, status, part)
	}
	if status >= http.StatusBadRequest && method != http.MethodHead && !json.Valid([]byte(body)) {
		t.Errorf("%s %s by %q: the body is no JSON: %s", method, path, user, body)
	}
}

func TestPost_Answers(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.want(t, "POST", "/api/lock/u/", "1", 200, `"uid":"u","user_id":1,`)
	s.store.Advance(59 * time.Second)
	s.want(t, "POST", "/api/lock/u/", "1", 200, `"user_id":1,`)
	s.store.Advance(59 * time.Second) // the time-out started anew
	status, body := s.send(t, "POST", "/api/lock/u/", "2")
	if want := `{"message":"Resource is already in use by another user","user_id":1}`; status != 423 || body != want {
		t.Errorf("got %d %s, want 423 %s", status, body, want)
	}
	s.store.Advance(time.Second) // the refused call did not lengthen it
	s.want(t, "POST", "/api/lock/u/", "2", 200, `"user_id":2,`)
	s.want(t, "POST", "/api/lock/other/", "1", 200, `"uid":"other"`)
}

func TestDelete_IsAlways204(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, step := range []struct{ method, user, holder string }{
		{"DELETE", "1", ""},
		{"POST", "1", `"user_id":1,`},
		{"DELETE", "2", `"user_id":1,`},
		{"DELETE", "1", ""},
		{"DELETE", "1", ""},
		{"POST", "2", `"user_id":2,`},
		{"DELETE", "1", `"user_id":2,`}, // late, by the former holder
	} {
		status, body := s.send(t, step.method, "/api/lock/u/", step.user)
		if step.method == "DELETE" && (status != 204 || body != "") {
			t.Errorf("got %d %q", status, body)
		}
		if step.holder == "" {
			s.want(t, "GET", "/api/lock/u/", "9", 404, `{"message":"Resource is not in use"}`)
		} else {
			s.want(t, "GET", "/api/lock/u/", "9", 200, step.holder)
		}
	}
}

func TestGet_ShowsTheLock(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.want(t, "POST", "/api/lock/u", "ann", 200, "")
	s.store.Advance(10 * time.Second)
	s.want(t, "POST", "/api/lock/u/", "ann", 200, "") // the same lock, with its last slash
	_, body := s.send(t, "GET", "/api/lock/u", "bob")
	var lock struct {
		UID       string    `json:"uid"`
		UserID    any       `json:"user_id"`
		LockedAt  time.Time `json:"locked_at"`
		RenewedAt time.Time `json:"renewed_at"`
		ExpiresAt time.Time `json:"expires_at"`
		Fence     int64     `json:"fence"`
	}
	if err := json.Unmarshal([]byte(body), &lock); err != nil {
		t.Fatal(err)
	}
	renewed, ends := lock.RenewedAt.Sub(lock.LockedAt), lock.ExpiresAt.Sub(lock.RenewedAt)
	if lock.UID != "u" || lock.UserID != "ann" || lock.Fence == 0 || renewed < 10*time.Second || ends != time.Minute {
		t.Errorf("got %s", body)
	}
	s.want(t, "HEAD", "/api/lock/u", "bob", 200, "")
}

func TestUserID_IsANumberIfJSONKeepsIt(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for i, tt := range []struct{ user, want string }{
		{"1", "1"},
		{"0", "0"},
		{"-7", "-7"},
		{"9007199254740991", "9007199254740991"},
		{"9007199254740992", `"9007199254740992"`},
		{"99999999999999999999", `"99999999999999999999"`},
		{"01", `"01"`},
		{"+1", `"+1"`},
		{"1.5", `"1.5"`},
		{"1e3", `"1e3"`},
		{"ann", `"ann"`},
		{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`},
	} {
		path := fmt.Sprintf("/api/lock/u%d/", i)
		s.want(t, "POST", path, tt.user, 200, `"user_id":`+tt.want+`,`)
		s.want(t, "POST", path, "other", 423, `"user_id":`+tt.want+`}`)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	long := strings.Repeat("%C3%A4", 255)
	for _, tt := range []struct {
		name, method, path, user string
		status                   int
		part                     string
	}{
		{"no user", "POST", "/api/lock/u/", "", 401, "The header X-User-Id with the user's id is missing"},
		{"no user", "DELETE", "/api/lock/u/", "", 401, "X-User-Id"},
		{"no user", "GET", "/api/lock/u/", "", 401, "X-User-Id"},
		{"a long user", "POST", "/api/lock/u/", strings.Repeat("u", 256), 400, "allowed are 1 to 255 characters"},
		{"PUT", "PUT", "/api/lock/u/", "1", 405, "allowed are"},
		{"PATCH", "PATCH", "/api/lock/u", "1", 405, "allowed are"},
		{"no uid", "POST", "/api/lock/", "1", 404, ""},
		{"no uid", "DELETE", "/api/lock//", "1", 404, ""},
		{"no uid", "POST", "/api/lock", "1", 404, ""},
		{"two segments", "POST", "/api/lock/a/b/", "1", 404, ""},
		{"another path", "GET", "/api/locks/u/", "1", 404, "There is no endpoint with the path /api/locks/u/"},
		{"NUL", "POST", "/api/lock/a%00b/", "1", 400, "without NUL"},
		{"no UTF-8", "POST", "/api/lock/%FF/", "1", 400, "UTF-8"},
		{"256 characters", "POST", "/api/lock/" + long + "x/", "1", 400, "allowed are 1 to 255 characters"},
		{"255 characters", "POST", "/api/lock/" + long + "/", "1", 200, ""},
		{"255 characters", "DELETE", "/api/lock/" + long + "/", "1", 204, ""},
	} {
		t.Run(tt.name+" "+tt.method, func(t *testing.T) { s.want(t, tt.method, tt.path, tt.user, tt.status, tt.part) })
	}
	if counts, err := s.store.Count(t.Context()); err != nil || len(counts) != 0 {
		t.Errorf("got %v %v, want nothing stored", counts, err)
	}
}

func TestUID_IsComparedDecoded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, tt := range []struct{ path, uid string }{
		{"/api/lock/a%2Fb/", "a/b"},
		{"/api/lock/a%2fb", "a/b"},
		{"/api/lock/%61%2Fb", "a/b"},
		{"/api/lock/a%252Fb/", "a%2Fb"},
		{"/api/lock/a%20b/", "a b"},
		{"/api/lock/A/", "A"},
		{"/api/lock/a+b", "a+b"},
		{"/api/lock/..%2F/", "../"},
	} {
		s.want(t, "POST", tt.path, "1", 200, `"uid":"`+tt.uid+`"`)
	}
	s.want(t, "POST", "/api/lock/a%2Fb", "2", 423, "")
	s.want(t, "POST", "/api/lock/a/", "2", 200, "")
}

// Go's client sends no broken escapes.
func TestBrokenEscapes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /api/lock/%zz/ HTTP/1.1\r\nHost: x\r\nX-User-Id: 1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 400"))
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 400" {
		t.Errorf("got %s %v", answer, err)
	}
}

func TestUserHeader_WithTwoValues(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/api/lock/u/", strings.NewReader("no JSON"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header["X-User-Id"] = []string{"1", "2"}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d", resp.StatusCode)
	}
}

func TestOutage(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, tt := range []struct {
		err    error
		status int
	}{
		{fault.New(fault.Unavailable, "gone"), 503},
		{fault.New(fault.Timeout, "slow"), 503},
		{context.DeadlineExceeded, 503},
		{errors.New("secret"), 500},
	} {
		s.store.Fail(tt.err)
		for _, method := range []string{"POST", "DELETE", "GET"} {
			s.want(t, method, "/api/lock/u/", "1", tt.status, `{"message":`)
			if _, body := s.send(t, method, "/api/lock/u/", "1"); strings.Contains(body, "secret") {
				t.Errorf("the answer shows the cause: %s", body)
			}
		}
	}
	s.store.Fail(nil)
	s.want(t, "POST", "/api/lock/u/", "1", 200, "")
}

func TestPost_HasOneWinner(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const users = 32
	begin, answers := make(chan struct{}), make(chan int, users)
	for i := range users {
		go func() {
			<-begin
			status, _ := s.send(t, "POST", "/api/lock/u/", fmt.Sprint(i))
			answers <- status
		}()
	}
	close(begin)
	got := map[int]int{}
	for range users {
		got[<-answers]++
	}
	if got[200] != 1 || got[423] != users-1 {
		t.Errorf("got %v, want one 200 and %d times 423", got, users-1)
	}
}

// slowStore lets a test act before a release begins.
type slowStore struct {
	*enginetest.Store
	begun, proceed, done chan struct{}
}

func (s *slowStore) Release(ctx context.Context, key engine.Key, owner string) (engine.Lock, engine.Outcome, error) {
	defer close(s.done)
	close(s.begun)
	<-s.proceed
	return s.Store.Release(ctx, key, owner)
}

func TestDelete_GoesOnWithoutItsClient(t *testing.T) {
	t.Parallel()
	slow := &slowStore{enginetest.NewStore(), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	left := make(chan struct{}) // the server knows that the client has left
	s := startOver(t, slow.Store, slow, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				context.AfterFunc(r.Context(), func() { close(left) })
			}
			h.ServeHTTP(w, r)
		})
	})
	s.want(t, "POST", "/api/lock/u/", "1", 200, "")
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, s.URL()+"/api/lock/u/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User-Id", "1")
	go func() {
		if resp, err := s.client.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-slow.begun
	cancel()
	<-left
	close(slow.proceed)
	<-slow.done
	s.want(t, "GET", "/api/lock/u/", "1", 404, "")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.want(t, "POST", "/api/lock/u/", "1", 200, "")
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if want := `mutex_http_requests_total{method="POST",route="/api/lock/:uid/",status="200"} 1`; !strings.Contains(rec.Body.String(), want) {
		t.Errorf("the metrics lack %s:\n%s", want, rec.Body)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*mutex.Settings)
		want   string
	}{
		{"complete", func(*mutex.Settings) {}, ""},
		{"off", func(s *mutex.Settings) { *s = mutex.Settings{} }, ""},
		{"no port", func(s *mutex.Settings) { s.Addr = "localhost" }, `MUTEX_ADDR is "localhost", allowed: host:port`},
		{"a name as port", func(s *mutex.Settings) { s.Addr = "localhost:http" }, "MUTEX_ADDR"},
		{"a short TTL", func(s *mutex.Settings) { s.TTL = time.Millisecond }, "MUTEX_TTL is 1ms, allowed: 1s to 24h0m0s"},
		{"a bad header", func(s *mutex.Settings) { s.UserHeader = "X User" }, `MUTEX_USER_HEADER is "X User"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			settings := mutex.Settings{Addr: "127.0.0.1:9003", TTL: time.Minute, UserHeader: "X-User-Id"}
			tt.change(&settings)
			err := settings.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
