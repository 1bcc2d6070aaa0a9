package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/httpapi"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

// harness is the page of locks over a store in memory, and one visitor's browser.
type harness struct {
	t       *testing.T
	store   *enginetest.Store
	locks   *engine.Locks
	handler http.Handler
	header  http.Header
	cookie  string
}

func newHarness(t *testing.T, mode auth.Mode) *harness {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, recent := enginetest.NewStore(), engine.NewRecent(10)
	d := &harness{t: t, store: store, locks: engine.NewLocks(store, recent), header: http.Header{}}
	guard := auth.NewGuard(auth.Settings{Auth: mode, Password: "correct horse", Contact: "Ann, 555-0100"}, nil, log)
	front, err := httpapi.New(httpapi.Options{
		Locks: d.locks, Claims: engine.NewClaims(store, recent, log), Recent: recent, Guard: guard, Log: log,
		Kinds: []httpapi.Kind{
			{Key: "content", Name: "locks.kindContent", Namespace: "sunbird/", Prefix: true},
			{Key: "drafts", Name: "locks.kindDrafts", Namespace: "mutex"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.handler = web.New(web.Options{
		Log: log, Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: 1 << 16,
		BelievePermissions: mode == auth.Gateway, Ready: func(context.Context) error { return nil },
	}, front.Routes)
	return d
}

// send makes a request of the browser, which keeps its cookie.
func (d *harness) send(method, path string, form url.Values) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, "http://localhost"+path, strings.NewReader(form.Encode()))
	for name, values := range d.header {
		r.Header[name] = values
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if d.cookie != "" {
		r.Header.Set("Cookie", d.cookie)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	// As a browser reads them: all pages are right below /locks/.
	w.Body = bytes.NewBufferString(strings.NewReplacer(`="../`, `="/`, `href="release?`, `href="/locks/release?`,
		`action="release?`, `action="/locks/release?`).Replace(w.Body.String()))
	if to := w.Header().Get("Location"); to != "" {
		resolved, err := r.URL.Parse(to)
		if err != nil {
			d.t.Fatal(err)
		}
		w.Header().Set("Location", resolved.RequestURI())
	}
	if set := w.Result().Cookies(); len(set) > 0 {
		d.cookie = set[0].Name + "=" + set[0].Value
	}
	return w
}

// want checks a page's status and texts.
func want(t *testing.T, w *httptest.ResponseRecorder, status int, texts ...string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("got %d, want %d: %s", w.Code, status, w.Body)
	}
	for _, text := range texts {
		if !strings.Contains(html.UnescapeString(w.Body.String()), text) {
			t.Errorf("the page has no %q: %s", text, w.Body)
		}
	}
}

// acquire grants a lock and returns it.
func (d *harness) acquire(namespace, name, owner string) engine.Lock {
	d.t.Helper()
	g, err := d.locks.Acquire(d.t.Context(), engine.Acquire{
		Key: engine.Key{Namespace: namespace, Name: name}, Owner: owner, Kind: "draft", TTL: time.Hour,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return g.Lock
}

// claim stores a claim of another instance.
func (d *harness) claim(namespace string, paths ...string) engine.Claim {
	d.t.Helper()
	instance := uuid.New()
	c := engine.Claim{ID: uuid.New(), Namespace: namespace, Instance: instance, Owner: "127.0.0.1:1", Abandon: time.Minute}
	for _, p := range paths {
		c.Resources = append(c.Resources, engine.Resource{Path: strings.Split(p, "/"), Write: true})
	}
	err := d.store.StartLease(d.t.Context(), instance, time.Hour)
	if err == nil {
		_, err = d.store.Enqueue(d.t.Context(), c)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// visitor leaves after the first event.
type visitor struct {
	*httptest.ResponseRecorder
	leave func()
}

func (v visitor) Write(text []byte) (int, error) {
	if bytes.HasPrefix(text, []byte("data:")) {
		v.leave()
	}
	return v.ResponseRecorder.Write(text)
}

var releaseLink = regexp.MustCompile(`href="(/locks/release\?[^"]+)"`)

// releasePath returns the path of the first release link of the page of locks.
func (d *harness) releasePath() string {
	d.t.Helper()
	found := releaseLink.FindStringSubmatch(d.send(http.MethodGet, "/locks/", nil).Body.String())
	if found == nil {
		d.t.Fatal("the page has no link to release a lock")
	}
	return html.UnescapeString(found[1])
}

func (d *harness) token() string { return strings.TrimPrefix(d.cookie, "staff_token=") }

func TestLocksPage(t *testing.T) {
	t.Parallel()
	t.Run("shows locks, who asked for them, claims, releases and events", func(t *testing.T) {
		t.Parallel()
		d := newHarness(t, auth.None)
		want(t, d.send(http.MethodGet, "/locks/", nil), 200, "No lock is held now.",
			"Version devel")
		l := d.acquire("sunbird/content", "do_1", "ann <b>")
		if _, err := d.locks.Ask(t.Context(), l.Key, engine.AskedFor{By: "bob", Name: "Bob", Message: "please"}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.locks.Ask(t.Context(), l.Key, engine.AskedFor{By: "eve"}); err != nil {
			t.Fatal(err)
		}
		c := d.claim("shelves", "floor 1/a", "floor 2")
		d.claim("shelves", "floor 2")
		d.store.Advance(time.Second)
		d.acquire("sunbird/content", "do_2", "ann")
		all := d.send(http.MethodGet, "/locks/", nil)
		want(t, all, 200, "do_1", "ann <b>", "Bob: please", "eve", "Content under edit (Sunbird)</td>",
			`id="lock-`+l.ID.String(), `id="lock-`+c.ID.String(), `<span class="id">shelves`,
			`<span class="id">sunbird/content`, ">127.0.0.1:1</td>",
			"write /floor 1/a, write /floor 2</td>", `write /floor 2 <span class="badge plain">waits</span>`,
			"127.0.0.1:1 for write /floor 2", "Fence 1", "Sign-in is off", "granted")
		body := all.Body.String()
		if strings.Index(body, `"id first">do_2<`) < strings.Index(body, "Paths (Locktopus)</td>") {
			t.Error("the newest lock is not the last one")
		}
		for query, want := range map[string][2]bool{ // whether the lock and a claim are shown
			"kind=paths": {false, true}, "kind=content": {true, false}, "kind=drafts": {},
			"search=FLOOR": {false, true}, "search=Ann": {true, false},
			"search=nothing": {}, "search=&kind=": {true, true},
		} {
			page := d.send(http.MethodGet, "/locks/?"+query, nil).Body.String()
			for i, shown := range []string{`"id first">do_1</td>`, "Paths (Locktopus)</td>"} {
				if strings.Contains(page, shown) != want[i] {
					t.Errorf("%s: %s is shown: %t, want %t", query, shown, !want[i], want[i])
				}
			}
		}
		want(t, d.send(http.MethodGet, "/locks/?kind=other", nil), 400, "There is no kind of locks other.")
		want(t, d.send(http.MethodGet, "/locks/?kind=content&search=Ann", nil), 200,
			`data-stream="live?kind=content&search=Ann"`)
		for i := range 501 {
			d.acquire("mutex", strconv.Itoa(i), "bob")
		}
		page := d.send(http.MethodGet, "/locks/?kind=drafts", nil).Body.String()
		if n := strings.Count(page, `<tr id="lock-`); n != 500 || !strings.Contains(page, "There are more locks") {
			t.Errorf("shows %d of many locks", n)
		}
	})
	t.Run("sends what is new to an open page", func(t *testing.T) {
		t.Parallel()
		d := newHarness(t, auth.None)
		d.acquire("sunbird/content", "do_1", "ann")
		d.acquire("mutex", "draft-1", "bob")
		follow := func() string {
			ctx, leave := context.WithCancel(t.Context())
			w := visitor{httptest.NewRecorder(), leave}
			d.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet,
				"http://localhost/locks/live?kind=content", nil))
			return w.Body.String()
		}
		news := follow()
		if strings.Count(news, `<tr id="lock-`) != 1 || !strings.Contains(news, `<td class="id first">do_1</td>`) {
			t.Errorf("got %s", news)
		}
		d.store.Fail(errors.New("away"))
		if news := follow(); !strings.Contains(news, "<p class=\"strip\">") || strings.Contains(news, "data-rows") {
			t.Errorf("without the database: got %s", news)
		}
	})
	t.Run("says when the database is away", func(t *testing.T) {
		t.Parallel()
		d := newHarness(t, auth.None)
		d.store.Fail(errors.New("away"))
		want(t, d.send(http.MethodGet, "/locks/", nil), 500, "Something went wrong",
			"The service could not make this page.", "Call Ann, 555-0100.", "Give this number to your support:")
		d.store.Fail(fault.New(fault.Unavailable, "The database is away"))
		outage := d.send(http.MethodGet, "/locks/?language=de", nil)
		want(t, outage, 503, "Zurzeit nicht verfügbar", "Zurzeit kann keine Sperre genommen",
			`lang="en">The database is away`, "Rufen Sie an: Ann, 555-0100.")
		if got := outage.Header().Get("Refresh"); got != "10" {
			t.Errorf("the page is loaded again after %q s, want 10", got)
		}
	})
	t.Run("speaks the reader's language", func(t *testing.T) {
		t.Parallel()
		for language, says := range map[string]string{
			"de": "Jetzt wird keine Sperre gehalten.", "es": "Ahora no se retiene ningún cerrojo.",
			"en-XA": "⟦Nóó lóóck íís hééld nóów.⟧",
		} {
			d := newHarness(t, auth.None)
			want(t, d.send(http.MethodGet, "/locks/?language="+language, nil), 200, `<html lang="`+language+`">`, says)
		}
	})
	t.Run("is found without its last slash", func(t *testing.T) {
		t.Parallel()
		if got := newHarness(t, auth.None).send(http.MethodGet, "/locks", nil); got.Code != 303 ||
			got.Header().Get("Location") != "/locks/" {
			t.Errorf("got %d to %s", got.Code, got.Header().Get("Location"))
		}
	})
	t.Run("loads its style", func(t *testing.T) {
		t.Parallel()
		d := newHarness(t, auth.None)
		style := regexp.MustCompile(`href="(/locks/-/page\.css[^"]+)"`).FindStringSubmatch(d.send(http.MethodGet, "/locks/",
			nil).Body.String())
		if style == nil {
			t.Fatal("the page names no style")
		}
		want(t, d.send(http.MethodGet, style[1], nil), 200, ":root")
		d.header.Set("Accept-Encoding", "gzip")
		for path, coding := range map[string]string{"/locks/": "", style[1]: "gzip"} {
			if got := d.send(http.MethodGet, path, nil).Header().Get("Content-Encoding"); got != coding {
				t.Errorf("%s is coded as %q, want %q", path, got, coding)
			}
		}
	})
}

func TestRelease(t *testing.T) {
	t.Parallel()
	t.Run("ends a lock and keeps who and why", func(t *testing.T) {
		t.Parallel()
		d := newHarness(t, auth.Basic)
		form := d.send(http.MethodGet, "/locks/", nil).Header().Get("Location")
		want(t, d.send(http.MethodGet, form, nil), 200, `name="password"`)
		r := &http.Request{Header: d.header}
		r.SetBasicAuth("Ada", "correct horse")
		l := d.acquire("mutex", "draft-1", "7")
		path := d.releasePath()
		want(t, d.send(http.MethodGet, path, nil), 200, "Release this lock?", "draft-1", `action="`+path, "Signed in as Ada")
		d.store.Fail(fault.New(fault.Unavailable, "The database is away"))
		away := d.send(http.MethodPost, path, url.Values{"reason": {"on leave"}, "token": {d.token()}})
		want(t, away, 503, "The database is away")
		if code := away.Header().Get(fault.Header); code != string(fault.Unavailable) {
			t.Errorf("the code is %q", code)
		}
		d.store.Fail(nil)
		done := d.send(http.MethodPost, path, url.Values{"reason": {"on leave"}, "token": {d.token()}})
		want(t, done, 303)
		want(t, d.send(http.MethodGet, done.Header().Get("Location"), nil), 200, "The lock was released.", "Ada released",
			"on leave")
		if _, err := d.locks.Fetch(t.Context(), l.Key); err == nil {
			t.Error("the lock is still held")
		}
		want(t, d.send(http.MethodPost, path, url.Values{
			"reason": {"again"}, "token": {d.token()},
		}), 404, "The lock is gone already", "If you have just released it yourself, that is done.")
	})
	t.Run("ends a claim", func(t *testing.T) {
		t.Parallel()
		d := newHarness(t, auth.None)
		c := d.claim("shelves", "a")
		path := d.releasePath()
		want(t, d.send(http.MethodPost, path, url.Values{"reason": {"stuck"}, "token": {d.token()}}), 303)
		if left, err := d.store.ClaimsOf(t.Context(), c.Instance, uuid.Nil, make([]engine.ClaimState, 1)); err != nil ||
			len(left) > 0 {
			t.Errorf("claims left: %v, %v", left, err)
		}
	})
	t.Run("keeps a reason of several lines as it was typed", func(t *testing.T) {
		t.Parallel()
		d := newHarness(t, auth.None)
		d.acquire("mutex", "draft-1", "7")
		// Browsers send each line break, which is one character in the field, as two.
		sent := " " + strings.Repeat("x\r\n", engine.MaxReason/2-1) + "xx\r\n"
		path := d.releasePath()
		want(t, d.send(http.MethodPost, path, url.Values{"reason": {sent}, "token": {d.token()}}), 303)
		kept := strings.TrimSpace(strings.ReplaceAll(sent, "\r", ""))
		if got, err := d.store.Releases(t.Context(), 1); err != nil || len(got) != 1 || got[0].Reason != kept {
			t.Errorf("kept %+v, %v", got, err)
		}
	})
	t.Run("never ends the lock of a successor", func(t *testing.T) {
		t.Parallel()
		d := newHarness(t, auth.None)
		l := d.acquire("mutex", "draft-1", "7")
		path := d.releasePath()
		if _, err := d.locks.Release(t.Context(), l.Key, "7"); err != nil {
			t.Fatal(err)
		}
		d.acquire("mutex", "draft-1", "8")
		want(t, d.send(http.MethodPost, path, url.Values{"reason": {"stuck"}, "token": {d.token()}}), 404, "gone already")
		if held, err := d.locks.Fetch(t.Context(), l.Key); err != nil || held.Owner != "8" {
			t.Errorf("got %+v, %v", held, err)
		}
	})
}

func TestRelease_Refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		form   func(d *harness) url.Values
		status int
		says   string
	}{
		{
			name: "a form without the token", form: func(*harness) url.Values { return url.Values{"reason": {"x"}} },
			status: 403,
			says:   "This form did not come from a page",
		},
		{
			name: "no reason", form: func(d *harness) url.Values { return url.Values{"token": {d.token()}} }, status: 422,
			says: "needs a reason",
		},
		{
			name: "a blank reason", form: func(d *harness) url.Values {
				return url.Values{"token": {d.token()}, "reason": {"   "}}
			}, status: 422, says: "needs a reason",
		},
		{name: "a long reason", form: func(d *harness) url.Values {
			return url.Values{"token": {d.token()}, "reason": {strings.Repeat("x", 501)}}
		}, status: 422, says: "at most 500 characters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newHarness(t, auth.None)
			l := d.acquire("mutex", "draft-1", "7")
			path := d.releasePath()
			want(t, d.send(http.MethodPost, path, tt.form(d)), tt.status, tt.says)
			if _, err := d.locks.Fetch(t.Context(), l.Key); err != nil {
				t.Errorf("the lock is gone: %v", err)
			}
		})
	}
	for name, path := range map[string]string{
		"no target": "/locks/release?namespace=mutex", "no id": "/locks/release?namespace=mutex&lock=1",
		"two targets": "/locks/release?lock=" + uuid.NewString() + "&claim=" + uuid.NewString(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, newHarness(t, auth.None).send(http.MethodGet, path, nil), 400, "This address names no lock")
		})
	}
}
