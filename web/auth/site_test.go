package auth_test

import (
	"context"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/auth"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// signOuts is the list that all instances of a service share.
type signOuts struct {
	mu    sync.Mutex
	ended map[uuid.UUID]time.Time
	away  bool
}

func (s *signOuts) SignOut(_ context.Context, session uuid.UUID, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return fault.Wrap(errors.New("no route"), fault.Unavailable, "The storage is away")
	}
	s.ended[session] = until
	return nil
}

func (s *signOuts) IsSignedOut(_ context.Context, session uuid.UUID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return false, fault.Wrap(errors.New("no route"), fault.Unavailable, "The storage is away")
	}
	_, ended := s.ended[session]
	return ended, nil
}

// site is a service with pages: /desk/:tenant/, whose answer says who came and what they may do.
type site struct {
	settings auth.Settings
	cookie   string
	ends     *signOuts
	rt       http.RoundTripper // to the provider
	registry *prometheus.Registry
	log      io.Writer
}

func byPassword() auth.Settings {
	return auth.Settings{
		Auth: auth.Basic, Password: password, Limits: auth.Limits{Idle: 30 * time.Minute, Longest: 12 * time.Hour},
	}
}

func newSite(s auth.Settings) site {
	return site{
		settings: s, cookie: "desk", ends: &signOuts{ended: map[uuid.UUID]time.Time{}}, registry: prometheus.NewRegistry(),
		log: io.Discard,
	}
}

// start starts an instance.
func (s site) start(t *testing.T) http.Handler {
	t.Helper()
	log := slog.New(slog.NewTextHandler(s.log, nil))
	guard := auth.NewGuard(s.settings, []string{maySee, mayPut}, log)
	guard.SetTransport(s.rt)
	guard.MakeKeysFast()
	templates, err := page.ParseTemplates(fstest.MapFS{}, template.FuncMap{"maxReason": func() int { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	pages := auth.NewPages(auth.PageOptions{
		Guard: guard, Root: "/desk/", Tenant: "tenant", Cookie: s.cookie, SignOuts: s.ends,
		Show: func(c echo.Context, status int, template string, title texts.Code, body any) error {
			token, err := page.CheckToken(c)
			if err != nil {
				return err
			}
			frame := page.Frame{Title: title, Body: body, CSRF: token}
			content, err := templates.Render(page.NewReader(c), template, page.Layout, frame)
			if err != nil {
				return err
			}
			return c.HTMLBlob(status, content)
		},
	})
	handle := web.Handle(func(c echo.Context) error {
		ctx := c.Request().Context()
		answer := okapi.FromContext(ctx).UserName + " sees"
		if guard.May(ctx, mayPut) && okapi.FromContext(ctx).HasPermission(mayPut) {
			answer += " and changes"
		}
		return c.String(http.StatusOK, answer)
	})
	bare := func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	routes := pages.Routes(bare)
	for _, r := range []web.Route{
		{Method: http.MethodGet, Path: "/desk/:tenant/", Permission: maySee},
		{Method: http.MethodGet, Path: "/desk/:tenant/list", Permission: maySee},
		{Method: http.MethodPost, Path: "/desk/:tenant/", Permission: mayPut},
	} {
		r.Endpoint, r.NoTenant = handle, true
		r.Guards = []echo.MiddlewareFunc{pages.Require(r.Permission)}
		routes = append(routes, r)
	}
	if s.registry == nil {
		s.registry = prometheus.NewRegistry()
	}
	s.registry.MustRegister(guard.Collector())
	return web.New(web.Options{
		Log: slog.New(slog.DiscardHandler), Registry: s.registry, RequestTimeout: time.Minute, BodyLimit: 10000,
		Ready: func(context.Context) error { return nil },
	}, routes)
}

// visitor is a browser at the site.
type visitor struct {
	t       *testing.T
	handler http.Handler
	header  http.Header
	cookies map[string]*http.Cookie
	peer    string // the address of the connection
}

func (s site) visit(t *testing.T) *visitor {
	t.Helper()
	return &visitor{
		t: t, handler: s.start(t), header: http.Header{}, cookies: map[string]*http.Cookie{}, peer: "10.0.0.9:4711",
	}
}

// at is the same visitor, with a copy of the cookies, at another instance.
func (v *visitor) at(handler http.Handler) *visitor {
	other := &visitor{
		t: v.t, handler: handler, header: v.header.Clone(), cookies: map[string]*http.Cookie{}, peer: v.peer,
	}
	for name, c := range v.cookies {
		other.cookies[name] = c
	}
	return other
}

func (v *visitor) do(method, path string, form url.Values) *httptest.ResponseRecorder {
	v.t.Helper()
	r := httptest.NewRequestWithContext(v.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Header, r.RemoteAddr = v.header.Clone(), v.peer
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	v.handler.ServeHTTP(w, r)
	if to := w.Header().Get("Location"); to != "" { // as a browser reads it
		resolved, err := r.URL.Parse(to)
		if err != nil {
			v.t.Fatal(err)
		}
		w.Header().Set("Location", resolved.String())
	}
	for _, c := range w.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		} else {
			v.cookies[c.Name] = c
		}
	}
	return w
}

func (v *visitor) get(path string) *httptest.ResponseRecorder {
	v.t.Helper()
	return v.do("GET", path, nil)
}

var tokenInput = regexp.MustCompile(`name="token" value="([A-Z2-7]+)"`)

// signIn fills in the form of the sign-in.
func (v *visitor) signIn(name, password, to string) *httptest.ResponseRecorder {
	v.t.Helper()
	return v.signInTo("diku", name, password, to)
}

func (v *visitor) signInTo(tenant, name, password, to string) *httptest.ResponseRecorder {
	v.t.Helper()
	form := v.get("/desk/" + tenant + "/sign-in?to=" + url.QueryEscape(to))
	token := tokenInput.FindStringSubmatch(form.Body.String())
	if form.Code != http.StatusOK || token == nil {
		v.t.Fatalf("the sign-in is %d %s", form.Code, form.Body)
	}
	return v.do("POST", "/desk/"+tenant+"/sign-in", url.Values{
		"token": {token[1]}, "name": {name}, "password": {password}, "to": {to},
	})
}

// token is what the forms of the pages have.
func (v *visitor) token() string {
	for _, c := range v.cookies {
		if strings.HasSuffix(c.Name, "staff_token") {
			return c.Value
		}
	}
	return ""
}

// signOut sends the form that each page has.
func (v *visitor) signOut() *httptest.ResponseRecorder {
	v.t.Helper()
	return v.do("POST", "/desk/diku/sign-out", url.Values{"token": {v.token()}})
}

// wantSignedIn checks whether a page admits the visitor.
func (v *visitor) wantSignedIn(name string) {
	v.t.Helper()
	if got := v.get("/desk/diku/"); got.Code != http.StatusOK || !strings.HasPrefix(got.Body.String(), name+" sees") {
		v.t.Errorf("the page is %d %s %v, want that of %s", got.Code, got.Body, got.Header(), name)
	}
}

func (v *visitor) wantSignedOut() {
	v.t.Helper()
	got := v.get("/desk/diku/list?x=1")
	to := got.Header().Get("Location")
	if got.Code != http.StatusSeeOther || to != "/desk/diku/sign-in?to=%2Fdesk%2Fdiku%2Flist%3Fx%3D1" {
		v.t.Errorf("the page is %d %s to %q, want a way to the sign-in", got.Code, got.Body, to)
	}
	if form := v.do("POST", "/desk/diku/", url.Values{}); form.Code != http.StatusUnauthorized {
		v.t.Errorf("a change is %d %s, want 401", form.Code, form.Body)
	}
}

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }

func wantStatus(t *testing.T, got *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	if got.Code != status || !strings.Contains(got.Body.String(), text) {
		t.Errorf("got %d %s, want %d with %q", got.Code, got.Body, status, text)
	}
}
