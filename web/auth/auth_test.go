package auth_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/config"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

const (
	password = "correct hörse battery"
	maySee   = "x.item.get"
	mayPut   = "x.item.put"
)

// granted are the permissions that the password grants.
func granted() []string { return []string{"x.override.one", "x.override.two"} }

// door is a service with two guarded routes.
type door struct {
	handler http.Handler
	log     bytes.Buffer // of the guard
}

// newDoor returns a service that answers with the caller's name and whether the caller has the
// permission mayPut.
func newDoor(mode auth.Mode) *door {
	d := &door{}
	g := auth.NewGuard(auth.Settings{Auth: mode, Password: password}, granted(),
		slog.New(slog.NewTextHandler(&d.log, nil)))
	handle := func(c echo.Context) error {
		ctx := c.Request().Context()
		answer := okapi.FromContext(ctx).UserName
		if g.May(ctx, mayPut) {
			answer += " may"
		}
		return c.String(http.StatusOK, answer)
	}
	d.handler = web.New(web.Options{
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: 10,
		JSONFaults:         true,
		BelievePermissions: mode == auth.Gateway,
		Ready:              func(context.Context) error { return nil },
	}, g.Routes([]web.Route{
		{Method: http.MethodGet, Path: "/x", Endpoint: web.Handle(handle), Permission: maySee, NoTenant: true},
		{Method: http.MethodPut, Path: "/x", Endpoint: web.Handle(handle), Permission: mayPut, NoTenant: true},
	}))
	return d
}

// knock makes a request; header alternates names and values.
func (d *door) knock(method, host string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, "/x", http.NoBody)
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w
}

func TestGuard_ChecksTheGatewaysPermissions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method, granted string
		status          int
		want            string
	}{
		"granted":      {method: "GET", granted: `["` + maySee + `"]`, status: 200, want: ""},
		"granted more": {method: "GET", granted: `["` + maySee + `","` + mayPut + `"]`, status: 200, want: " may"},
		"granted another": {
			method: "PUT", granted: `["` + maySee + `"]`, status: 403, want: "Access requires permission: x.item.put",
		},
		"granted nothing": {method: "GET", granted: `[]`, status: 403, want: "Access requires permission: x.item.get"},
		"no gateway":      {method: "GET", granted: ``, status: 403, want: "Access requires permission: x.item.get"},
		"no list":         {method: "GET", granted: maySee, status: 400, want: "must be a JSON list of strings"},
		"a longer name": {
			method: "GET", granted: `["` + maySee + `.more"]`, status: 403, want: "Access requires permission",
		},
		"everything, as a star": {method: "GET", granted: `["*"]`, status: 403, want: "Access requires permission"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newDoor(auth.Gateway).knock(tt.method, "library.example.org", okapi.PermissionsHeader, tt.granted)
			if got.Code != tt.status || !strings.Contains(got.Body.String(), tt.want) {
				t.Errorf("got %d %s, want %d with %s", got.Code, got.Body, tt.status, tt.want)
			}
		})
	}
}

func basic(userAndPassword string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(userAndPassword))
}

func TestGuard_ChecksThePassword(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		sent   string
		status int
		want   string
	}{
		"right":                  {sent: basic("Ann Lee:" + password), status: 200, want: "Ann Lee may"},
		"scheme in lower case":   {sent: "b" + basic("ann:" + password)[1:], status: 200, want: "ann may"},
		"a name beyond ASCII":    {sent: basic("Žofie:" + password), status: 200, want: "Žofie may"},
		"the longest name":       {sent: basic(strings.Repeat("é", 100) + ":" + password), status: 200, want: "é may"},
		"nothing":                {sent: "", status: 401, want: "Sign in with your name and the password"},
		"another scheme":         {sent: "Bearer abc", status: 401, want: "Sign in"},
		"no base64":              {sent: "Basic %%%", status: 401, want: "Sign in"},
		"wrong":                  {sent: basic("ann:wrong horse battery"), status: 401, want: "The password is wrong"},
		"more than the password": {sent: basic("ann:" + password + "x"), status: 401, want: "The password is wrong"},
		"less than the password": {sent: basic("ann:" + password[:12]), status: 401, want: "The password is wrong"},
		"no password":            {sent: basic("ann:"), status: 401, want: "The password is wrong"},
		"no name":                {sent: basic(":" + password), status: 401, want: "1 to 100 printable characters"},
		"a blank name":           {sent: basic("  :" + password), status: 401, want: "1 to 100 printable characters"},
		"a name too long": {
			sent: basic(strings.Repeat("é", 101) + ":" + password), status: 401, want: "1 to 100 printable characters",
		},
		"a name that breaks the line": {
			sent: basic("ann\nlee:" + password), status: 401, want: "1 to 100 printable characters",
		},
		"a name that is no UTF-8": {
			sent: basic("ann\xff:" + password), status: 401, want: "1 to 100 printable characters",
		},
		"a bad name, a wrong password": {sent: basic(":x"), status: 401, want: "1 to 100 printable characters"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newDoor(auth.Basic).knock("PUT", "library.example.org", "Authorization", tt.sent, okapi.PermissionsHeader,
				`["`+mayPut+`"]`)
			if got.Code != tt.status || !strings.Contains(got.Body.String(), tt.want) {
				t.Errorf("got %d %s, want %d with %s", got.Code, got.Body, tt.status, tt.want)
			}
			wantChallenge := ""
			if tt.status == http.StatusUnauthorized {
				wantChallenge = `Basic realm="Staff", charset="UTF-8"`
				if got.Header().Get(fault.Header) != string(fault.Unauthorized) {
					t.Errorf("the code is %q", got.Header().Get(fault.Header))
				}
			}
			if challenge := got.Header().Get("WWW-Authenticate"); challenge != wantChallenge {
				t.Errorf("the challenge is %q, want %q", challenge, wantChallenge)
			}
		})
	}
}

func TestGuard_LogsAWrongPasswordWithoutItsText(t *testing.T) {
	t.Parallel()
	d := newDoor(auth.Basic)
	d.knock("GET", "x", "Authorization", basic("ann:guessed-one"), "X-Forwarded-For", "9.9.9.9")
	line := d.log.String()
	if !strings.Contains(line, "level=WARN") || !strings.Contains(line, "peer=192.0.2.1") {
		t.Errorf("logged %q, want a warning with the peer's address", line)
	}
	if strings.Contains(line, "guessed-one") || strings.Contains(line, password) || strings.Contains(line, "9.9.9.9") {
		t.Errorf("logged %q", line)
	}
	d.log.Reset()
	d.knock("GET", "x") // like the first request of each browser
	d.knock("GET", "x", "Authorization", basic("ann:"+password))
	if d.log.Len() != 0 {
		t.Errorf("logged %q, want nothing", &d.log)
	}
}

func TestGuard_RequiresALoopbackHostWithoutSignIn(t *testing.T) {
	t.Parallel()
	for host, served := range map[string]bool{
		"localhost": true, "LOCALHOST:9801": true, "localhost.:9801": true, "diku.localhost:9801": true,
		"127.0.0.1:9801": true, "127.8.9.1": true, "[::1]:9801": true, "[::1]": true, "[::ffff:127.0.0.1]:80": true,
		"library.example.org": false, "localhost.example.org:9801": false, "notlocalhost": false,
		"127.0.0.1.example.org": false,
		"10.0.0.1:9801":         false, "0.0.0.0:9801": false, "[::]:9801": false, "128.0.0.1": false, "": false,
		":9801": false,
		"127.1": false, "2130706433": false, // read as addresses by some, never by a browser's Host
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			got := newDoor(auth.None).knock("PUT", host)
			if served && (got.Code != http.StatusOK || got.Body.String() != " may") {
				t.Errorf("got %d %s, want 200", got.Code, got.Body)
			}
			if !served && (got.Code != http.StatusForbidden ||
				!strings.Contains(got.Body.String(), "set STAFF_AUTH to gateway, basic or oidc")) {
				t.Errorf("got %d %s, want 403 that names the setting", got.Code, got.Body)
			}
		})
	}
}

func TestGuard_RefusesChangesFromOtherSites(t *testing.T) {
	t.Parallel()
	const host = "localhost:9801"
	tests := map[string]struct {
		method string
		header []string
		status int
	}{
		"a program": {method: "PUT", header: nil, status: 200},
		"our own page": {
			method: "PUT", header: []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://" + host}, status: 200,
		},
		"our own page, an old browser": {method: "PUT", header: []string{"Origin", "http://" + host}, status: 200},
		"typed into the browser":       {method: "PUT", header: []string{"Sec-Fetch-Site", "none"}, status: 200},
		"another site": {
			method: "PUT", header: []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, status: 403,
		},
		"another site, an old browser": {method: "PUT", header: []string{"Origin", "https://evil.example"}, status: 403},
		"another port of this host": {
			method: "PUT", header: []string{"Sec-Fetch-Site", "same-site", "Origin", "http://localhost:8080"}, status: 403,
		},
		"a page without an origin": {method: "PUT", header: []string{"Origin", "null"}, status: 403},
		"a link on another site":   {method: "GET", header: []string{"Sec-Fetch-Site", "cross-site"}, status: 200},
		"a picture on a page elsewhere": {
			method: "GET", header: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "image"}, status: 200,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []auth.Mode{auth.Gateway, auth.Basic, auth.None} {
				header := append([]string{
					"Authorization", basic("ann:" + password), okapi.PermissionsHeader, `["` + maySee + `","` + mayPut + `"]`,
				}, tt.header...)
				got := newDoor(mode).knock(tt.method, host, header...)
				want := tt.status
				if mode == auth.Gateway { // the gateway decides
					want = http.StatusOK
				}
				if got.Code != want || (want == http.StatusForbidden &&
					!strings.Contains(got.Body.String(), "a page of another site")) {
					t.Errorf("%s: got %d %s, want %d", mode, got.Code, got.Body, want)
				}
			}
		})
	}
}

func TestGuard_RefusesModesWithoutPrograms(t *testing.T) {
	t.Parallel()
	for mode, status := range map[auth.Mode]int{"": http.StatusInternalServerError, auth.OIDC: http.StatusForbidden} {
		got := newDoor(mode).knock("GET", "localhost", "Authorization", basic("ann:"+password), okapi.PermissionsHeader, `["`+
			maySee+`"]`)
		if got.Code != status {
			t.Errorf("%q: got %d %s, want %d", mode, got.Code, got.Body, status)
		}
	}
}

func TestSettings_CheckThePassword(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ password, want string }{
		"the shortest":    {strings.Repeat("ü", 12), ""},
		"the longest":     {strings.Repeat("ü", 200), ""},
		"none":            {"", "has 0 characters, allowed: 12 to 200"},
		"too short":       {"secretsecre", "has 11 characters, allowed: 12 to 200"},
		"too long":        {strings.Repeat("s", 201), "has 201 characters, allowed: 12 to 200"},
		"a line break":    {"secretsecret\n", "control characters"},
		"no text in UTF8": {"secretsecret\xff", "no UTF-8"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := byPassword()
			s.Password = tt.password
			err := s.Validate(config.HTTP{}, nil)
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the password is repeated: %v", err)
			}
		})
	}
}
