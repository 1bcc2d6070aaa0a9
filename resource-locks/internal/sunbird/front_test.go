package sunbird

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/web/auth"
)

const (
	keyID  = "key-1"
	issuer = "https://sunbird.example.org/auth/realms/sunbird"
)

// signingKey is the key of all tests' tokens.
var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// harness is a server over a store in memory.
type harness struct {
	t        *testing.T
	server   *server
	store    *enginetest.Store
	registry *prometheus.Registry
	log      *bytes.Buffer // to be read after the server has stopped
	refused  int           // calls during an outage
}

type observer struct{}

func (observer) Observe(engine.Event) {}

// newHarness returns a front that checks tokens; change may change its settings.
func newHarness(t *testing.T, change func(*Settings)) *harness {
	t.Helper()
	cfg := Settings{
		Addr: "127.0.0.1:0", Auth: AuthToken, LockTTL: time.Hour, ResumeWithin: 24 * time.Hour,
		ResourceTypes: []string{"content"},
		Keys:          writeKeys(t, map[string]string{keyID + ".pem": publicPEM(t, &signingKey().PublicKey)}), Issuer: issuer,
	}
	if change != nil {
		change(&cfg)
	}
	f := &harness{t: t, store: enginetest.NewStore(), registry: prometheus.NewRegistry(), log: &bytes.Buffer{}}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), f.log), nil))
	var err error
	guard := auth.NewGuard(auth.Settings{Auth: auth.Gateway}, nil, log)
	f.server, err = newServer(Options{
		Settings: cfg, Locks: engine.NewLocks(f.store, observer{}), Guard: guard, Registry: f.registry, Log: log,
		CountRefusal: func() bool { f.refused++; return true },
	}, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// answer is an envelope as clients read it.
type answer struct {
	Status       int
	Header       http.Header
	ID, Ver, TS  string
	ResponseCode string
	Params       struct {
		ResMsgID            string
		MsgID, Err, ErrMsg  *string
		Status              string
		UnknownFieldsOfBody json.RawMessage
	}
	Result struct {
		LockKey, ExpiresAt string
		ExpiresIn          *float64
		Requests           []engine.AskedFor
		Count              *int
		Data               []map[string]any
		LockedBy           string
	}
}

// call sends a request; header alternates names and values.
func (f *harness) call(method, path, body string, header ...string) answer {
	f.t.Helper()
	r := httptest.NewRequestWithContext(f.t.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.server.ServeHTTP(w, r)
	a := answer{Status: w.Code, Header: w.Header()}
	if text := w.Body.String(); text != "" {
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			f.t.Errorf("%s %s: the answer is no envelope: %v in %s", method, path, err, text)
		}
	}
	return a
}

// user is a user with a device.
type user struct {
	f        *harness
	id, name string
	device   string
	extra    jwt.MapClaims
}

func (f *harness) user(id, name, device string) *user {
	return &user{f: f, id: id, name: name, device: device}
}

func (u *user) on(device string) *user { return &user{f: u.f, id: u.id, name: u.name, device: device} }

func (u *user) headers() []string {
	claims := jwt.MapClaims{
		"sub": "f:5a8a3f2b:" + u.id, "name": u.name, "iss": issuer, "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, u.extra)
	return []string{tokenHeader, sign(u.f.t, claims), deviceHeader, u.device, msgIDHeader, "m-1"}
}

func sign(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = keyID
	text, err := token.SignedString(signingKey())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// body returns a message with the request's fields, in pairs; a field without a value in
// the pair is left out.
func body(pairs ...string) string {
	request := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		request[pairs[i]] = pairs[i+1]
	}
	text, err := json.Marshal(map[string]any{
		"id": "x", "params": map[string]string{"msgid": "m-body"}, "request": request,
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (u *user) create(resource string) answer {
	u.f.t.Helper()
	creator, err := json.Marshal(map[string]string{"name": u.name, "id": u.id})
	if err != nil {
		u.f.t.Fatal(err)
	}
	return u.f.call("POST", "/v1/lock/create", body("resourceId", resource, "resourceType", "Content",
		"resourceInfo", `{"contentType":"Course"}`, "createdBy", u.id, "creatorInfo", string(creator)), u.headers()...)
}

func (u *user) refresh(resource, lockID string) answer {
	u.f.t.Helper()
	return u.f.call("PATCH", "/v1/lock/refresh", body("lockId", lockID, "resourceId", resource, "resourceType", "content"),
		u.headers()...)
}

func (u *user) retire(resource string) answer {
	u.f.t.Helper()
	return u.f.call("DELETE", "/v1/lock/retire", body("resourceId", resource, "resourceType", "content"), u.headers()...)
}

func (u *user) force(resource, reason string) answer {
	u.f.t.Helper()
	return u.f.call("DELETE", "/v1/lock/force", body("resourceId", resource, "resourceType", "content", "reason", reason),
		u.headers()...)
}

func (u *user) ask(resource, message string) answer {
	u.f.t.Helper()
	return u.f.call("POST", "/v1/lock/request",
		body("resourceId", resource, "resourceType", "content", "message", message), u.headers()...)
}

func (f *harness) list(text string) answer {
	f.t.Helper()
	return f.call("POST", "/v1/lock/list", text, deviceHeader, "d")
}

// wants checks that the answer is a success.
func (a answer) wants(t *testing.T, id string) answer {
	t.Helper()
	if a.Status != http.StatusOK || a.ID != id || a.ResponseCode != "OK" || a.Params.Status != "successful" ||
		a.Params.Err != nil || a.Params.ErrMsg != nil {
		t.Fatalf("got %s, want a success of %s", a.text(), id)
	}
	return a
}

// refused checks a refusal; an empty text is not compared.
func (a answer) refused(t *testing.T, status int, code, text string) {
	t.Helper()
	if a.Status != status || a.Params.Status != "failed" || a.Params.Err == nil || *a.Params.Err != code ||
		a.Params.ErrMsg == nil ||
		(text != "" && *a.Params.ErrMsg != text) || a.Result.LockKey != "" {
		t.Fatalf("got %s, want %d %s %q", a.text(), status, code, text)
	}
	want := "CLIENT_ERROR"
	switch {
	case status == http.StatusUnauthorized:
		want = "UNAUTHORIZED_ACCESS"
	case status >= http.StatusInternalServerError:
		want = "SERVER_ERROR"
	}
	if a.ResponseCode != want {
		t.Errorf("the response code of %d is %s, want %s", status, a.ResponseCode, want)
	}
}

func (a answer) text() string {
	text, err := json.Marshal(a)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// readAll returns a body as text.
func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
