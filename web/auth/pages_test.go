package auth_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
)

func TestPages_SignInByForm(t *testing.T) {
	t.Parallel()
	s := newSite(byPassword())
	v := s.visit(t)
	v.wantSignedOut()
	if got := v.get("/desk/diku/"); got.Header().Get("WWW-Authenticate") != "" {
		t.Error("a page makes the browser ask by itself, which knows no sign-out")
	}
	wantStatus(t, v.get("/desk/-/signed-in"), http.StatusNotFound, "") // the way back from a provider
	wantStatus(t, v.get("/desk/diku/sign-in?to=/desk/diku/list"), http.StatusOK, `value="/desk/diku/list"`)
	wrong := v.signIn("Ann <Lee>", "wrong horse battery", "/desk/diku/list?x=1")
	wantStatus(t, wrong, http.StatusUnprocessableEntity, "The password is wrong")
	wantStatus(t, wrong, http.StatusUnprocessableEntity, `value="Ann &lt;Lee&gt;"`)
	if strings.Contains(wrong.Body.String(), "wrong horse") {
		t.Error("the page repeats the password")
	}
	v.wantSignedOut()
	wantStatus(t, v.signIn("", password, "/desk/diku/"), http.StatusUnprocessableEntity, "1 to 100 printable characters")

	right := v.signIn("Ann", password, "/desk/diku/list?x=1")
	if to := right.Header().Get("Location"); right.Code != http.StatusSeeOther || to != "/desk/diku/list?x=1" {
		t.Errorf("the sign-in is %d to %q", right.Code, to)
	}
	v.wantSignedIn("Ann")
	wantStatus(t, v.do("POST", "/desk/diku/", url.Values{}), http.StatusOK, "Ann sees and changes")
	other := s
	other.registry = nil
	v.at(other.start(t)).wantSignedIn("Ann")
}

func TestPages_CookieFlags(t *testing.T) {
	t.Parallel()
	const (
		overHTTP  = "desk_session_diku; Path=/; HttpOnly; SameSite=Lax"
		overHTTPS = "__Host-desk_session_diku; Path=/; HttpOnly; Secure; SameSite=Lax"
	)
	for _, tt := range []struct{ scheme, peer, want string }{
		{scheme: "http", peer: "10.0.0.9:4711", want: overHTTP},
		{scheme: "https", peer: "10.0.0.9:4711", want: overHTTPS},
		{scheme: "https", peer: "192.0.2.9:4711", want: overHTTPS},
		{scheme: "https", peer: "100.64.0.7:4711", want: overHTTPS},
		{scheme: "https", peer: "[2001:db8::7]:4711", want: overHTTPS},
	} {
		t.Run(tt.scheme+" by "+tt.peer, func(t *testing.T) {
			t.Parallel()
			scheme, want := tt.scheme, tt.want
			v := newSite(byPassword()).visit(t)
			v.peer = tt.peer
			v.header.Set("X-Forwarded-Proto", scheme)
			got := v.signIn("Ann", password, "")
			var flags string
			for _, c := range got.Header().Values("Set-Cookie") {
				if name, rest, _ := strings.Cut(c, "="); strings.Contains(name, "session") {
					_, attributes, _ := strings.Cut(rest, ";")
					flags = name + ";" + attributes
				} else if strings.HasPrefix(name, "__Host-") != (scheme == "https") {
					t.Errorf("the cookie of the token is %q", c)
				}
			}
			if flags != want {
				t.Errorf("the cookie is %q, want %q", flags, want)
			}
			v.wantSignedIn("Ann")
			v.header.Set("X-Forwarded-Proto", map[string]string{"http": "https", "https": "http"}[scheme])
			v.wantSignedOut() // a neighbour may set a cookie without the prefix
		})
	}
}

func TestPages_SessionEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(s *site, v *visitor) // changes the site for the next instance
		says bool                      // whether the session goes on
	}{
		{name: "nothing happens", end: func(*site, *visitor) {}, says: true},
		{name: "shortly before the idle time", end: func(*site, *visitor) { pass(30*time.Minute - time.Second) }, says: true},
		{name: "the idle time is over", end: func(*site, *visitor) { pass(30 * time.Minute) }},
		{name: "a sign-out at another instance", end: func(_ *site, v *visitor) {
			wantStatus(v.t, v.at(v.handler).signOut(), http.StatusSeeOther, "")
		}},
		{name: "another password", end: func(s *site, _ *visitor) { s.settings.Password += "!" }},
		{name: "another service with the password", end: func(s *site, v *visitor) {
			s.cookie = "shop"
			v.cookies["shop_session_diku"] = v.cookies["desk_session_diku"]
			v.cookies["shop_session_diku"].Name = "shop_session_diku"
		}},
		{name: "one byte of the cookie differs", end: func(_ *site, v *visitor) {
			c := v.cookies["desk_session_diku"]
			first := "A"
			if c.Value[0] == 'A' {
				first = "B"
			}
			c.Value = first + c.Value[1:]
		}},
		{name: "a cookie that nothing sealed", end: func(_ *site, v *visitor) {
			v.cookies["desk_session_diku"].Value = "eyJuYW1lIjoiQW5uIn0"
		}},
		{name: "one character after the cookie", end: func(_ *site, v *visitor) {
			v.cookies["desk_session_diku"].Value += "!"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(byPassword())
				v := s.visit(t)
				v.signIn("Ann", password, "")
				copied := v.at(v.handler)
				tt.end(&s, copied)
				s.registry = nil
				copied.handler = s.start(t)
				if tt.says {
					copied.wantSignedIn("Ann")
				} else {
					copied.wantSignedOut()
				}
				if left, _ := copied.measureCookies(s.cookie + "_session_"); (len(left) > 0) != tt.says {
					t.Errorf("the cookies %q are left", left)
				}
			})
		})
	}
}

func TestPages_SessionIsOneTenants(t *testing.T) {
	t.Parallel()
	v := newSite(byPassword()).visit(t)
	v.signIn("Ann", password, "")
	if got := v.get("/desk/diku_/"); got.Code != http.StatusSeeOther {
		t.Errorf("the page of a tenant whose name ends in _ is %d %s", got.Code, got.Body)
	}
	v.wantSignedIn("Ann")
	for _, other := range []string{"other", "diku_"} {
		c := *v.cookies["desk_session_diku"]
		c.Name = "desk_session_" + other
		v.cookies[c.Name] = &c
		if got := v.get("/desk/" + other + "/"); got.Code != http.StatusSeeOther {
			t.Errorf("the page of %s is %d %s", other, got.Code, got.Body)
		}
	}
}

// A person who works keeps the session for its longest time. A page that only stays open does not.
func TestPages_KeepASessionInUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := newSite(byPassword()).visit(t)
		v.signIn("Ann", password, "")
		for range 35 { // 11 h 40 min
			pass(20 * time.Minute)
			v.wantSignedIn("Ann")
		}
		pass(20 * time.Minute)
		v.wantSignedOut()

		v.signIn("Ann", password, "")
		stream := v.header.Clone()
		stream.Set("Accept", "text/event-stream")
		for range 2 {
			pass(15*time.Minute - time.Second)
			v.header, stream = stream, v.header
			v.wantSignedIn("Ann")
			v.header, stream = stream, v.header
		}
		pass(2 * time.Second)
		v.wantSignedOut()
		v.header = stream
		wantRefusedScript(v)
	})
}

func TestPages_SignOut(t *testing.T) {
	t.Parallel()
	s := newSite(byPassword())
	v := s.visit(t)
	v.signIn("Ann", password, "")
	copied := v.at(v.handler)

	s.ends.away = true
	wantStatus(t, v.get("/desk/diku/"), http.StatusServiceUnavailable, "")
	wantStatus(t, v.signOut(), http.StatusServiceUnavailable, "")
	s.ends.away = false
	v.wantSignedIn("Ann") // so that a repeat can end it

	wantStatus(t, v.get("/desk/diku/sign-out"), http.StatusMethodNotAllowed, "")
	bad := v.do("POST", "/desk/diku/sign-out", url.Values{"token": {"x"}})
	wantStatus(t, bad, http.StatusForbidden, "This form did not come")
	v.header.Set("Sec-Fetch-Site", "cross-site")
	wantStatus(t, v.signOut(), http.StatusForbidden, "another site")
	v.header.Del("Sec-Fetch-Site")
	v.wantSignedIn("Ann")

	out := v.signOut()
	if to := out.Header().Get("Location"); out.Code != http.StatusSeeOther || to != "/desk/diku/signed-out" {
		t.Fatalf("the sign-out is %d %s to %q", out.Code, out.Body, to)
	}
	wantStatus(t, v.get("/desk/diku/signed-out"), http.StatusOK, "Sign in again")
	wantStatus(t, v.get("/desk/diku/signed-out"), http.StatusOK, `href="../../desk/diku/"`)
	v.wantSignedOut()
	v.signOut() // without a session
	copied.wantSignedOut()
	v.signIn("Bo", password, "")
	v.wantSignedIn("Bo")
	for _, until := range s.ends.ended {
		if left := time.Until(until); left < 12*time.Hour || left > 13*time.Hour {
			t.Errorf("a sign-out is kept for %s", left)
		}
	}
}

func TestPages_SignInOfAnotherSite(t *testing.T) {
	t.Parallel()
	v := newSite(byPassword()).visit(t)
	form := url.Values{"name": {"Eve"}, "password": {password}, "token": {strings.Repeat("A", 26)}}
	wantStatus(t, v.do("POST", "/desk/diku/sign-in", form), http.StatusForbidden, "This form did not come")
	v.header.Set("Origin", "https://evil.example")
	wantStatus(t, v.signIn("Eve", password, ""), http.StatusForbidden, "another site")
	v.header.Del("Origin")
	v.wantSignedOut()
}

// What others may have put into the browser before the sign-in does not count after it.
func TestPages_FixNoSession(t *testing.T) {
	t.Parallel()
	v := newSite(byPassword()).visit(t)
	v.signIn("Eve", password, "")
	eves := v.at(v.handler)
	planted := v.cookies["staff_token"].Value
	v.signIn("Ann", password, "")
	v.wantSignedIn("Ann")
	eves.wantSignedIn("Eve")
	if v.cookies["desk_session_diku"].Value == eves.cookies["desk_session_diku"].Value ||
		v.cookies["staff_token"].Value == planted {
		t.Error("a sign-in keeps the session or the token of forms from before")
	}
	anns := v.cookies["staff_token"].Value
	v.signOut()
	if v.cookies["staff_token"].Value == anns {
		t.Error("a sign-out keeps the token of forms")
	}
	eves.wantSignedIn("Eve")
}

func TestPages_GoBackToOwnPagesOnly(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"/desk/diku/list?x=1": "/desk/diku/list?x=1", "": "/desk/diku/", "https://evil.example/desk/diku/": "/desk/diku/",
		"//evil.example/desk/diku/": "/desk/diku/", `/\evil.example`: "/desk/diku/", "/desk/other/": "/desk/diku/",
		"javascript:alert(1)": "/desk/diku/", "/desk/diku/\r\nX: y": "/desk/diku/", "/desk/diku/sign-in?to=x": "/desk/diku/",
		"/desk/diku/../../admin": "/desk/diku/", "/desk/diku/list.csv?x=1": "/desk/diku/list?x=1",
		"/desk/diku/list?x=" + strings.Repeat("1", 2000): "/desk/diku/",
	} {
		v := newSite(byPassword()).visit(t)
		if got := v.signIn("Ann", password, to).Header().Get("Location"); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

func TestPages_TakeThePasswordOfPrograms(t *testing.T) {
	t.Parallel()
	v := newSite(byPassword()).visit(t)
	v.header.Set("Authorization", basic("ann:"+password))
	v.wantSignedIn("ann")
	v.header.Set("Authorization", basic("ann:wrong horse battery"))
	wantStatus(t, v.get("/desk/diku/"), http.StatusUnauthorized, "The password is wrong")
	v.header.Set("Sec-Fetch-Site", "cross-site")
	wantStatus(t, v.do("POST", "/desk/diku/", url.Values{}), http.StatusForbidden, "another site")
}

func TestPages_SlowDownWrongPasswords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newSite(byPassword())
		s.log = &log
		v := s.visit(t)
		for range 5 {
			wantStatus(t, v.signIn("Ann", "wrong horse battery", ""), http.StatusUnprocessableEntity, "The password is wrong")
		}
		form := v.signIn("Ann", password, "")
		wantStatus(t, form, http.StatusTooManyRequests, "Wait for 10 s")
		if after := form.Header().Get("Retry-After"); after != "10" {
			t.Errorf("Retry-After of the form is %q", after)
		}
		v.header.Set("Authorization", basic("Ann:"+password)) // the same for programs
		slowed := v.get("/desk/diku/")
		wantStatus(t, slowed, http.StatusTooManyRequests, "Too many wrong passwords")
		after, code := slowed.Header().Get("Retry-After"), slowed.Header().Get(fault.Header)
		if after != "10" || code != "TOO_MANY_TRIES" {
			t.Errorf("Retry-After is %q, the code %q", after, code)
		}
		v.header.Del("Authorization")
		v.signIn("Bo", password, "") // another name
		v.wantSignedIn("Bo")
		pass(10 * time.Second)
		v.signIn("Ann", password, "")
		v.wantSignedIn("Ann")

		guesses := 0
		for i := 0; v.signIn(fmt.Sprint("name ", i), "wrong horse battery", "").Code == http.StatusUnprocessableEntity; i++ {
			guesses++
		}
		if guesses < 40 || guesses > 50 {
			t.Errorf("one address may guess %d times under many names", guesses)
		}
		wantStatus(t, v.signIn("Bo", password, ""), http.StatusTooManyRequests, "Wait for 1 s")
		pass(time.Second)
		v.signIn("Bo", password, "")
		v.wantSignedIn("Bo")

		if lines := strings.Count(log.String(), "wrong password"); lines != 1 {
			t.Errorf("logged %d times within a minute:\n%s", lines, &log)
		}
		pass(time.Minute)
		v.signIn("Ann", "wrong horse battery", "")
		if want := fmt.Sprintf("times=%d", guesses+5); !strings.Contains(log.String(), want) ||
			strings.Contains(log.String(), "horse") {
			t.Errorf("logged %s, want %s", &log, want)
		}
		want := fmt.Sprintf(`# HELP staff_refused_passwords_total Passwords of staff that were refused: `+
			"wrong ones, and those that came too soon after wrong ones.\n# TYPE staff_refused_passwords_total counter\n"+
			"staff_refused_passwords_total{reason=\"too_soon\"} 4\n"+
			"staff_refused_passwords_total{reason=\"wrong\"} %d\n", guesses+6)
		err := testutil.GatherAndCompare(s.registry, strings.NewReader(want), "staff_refused_passwords_total")
		if err != nil {
			t.Error(err)
		}
	})
}

func TestGuard_RemembersSomeCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := auth.NewGuard(auth.Settings{Auth: auth.Basic, Password: password}, nil, slog.New(slog.DiscardHandler))
		for range 5 {
			_, _ = g.Guess("2001:db8::1")
		}
		next := 0
		guess := func(times int) (remembered int) { // each from another address
			for range times {
				next++
				remembered, _ = g.Guess(fmt.Sprintf("10.0.%d.%d", next/256, next%256))
			}
			return remembered
		}
		if n := guess(4999); n != 10_000 {
			t.Errorf("%d callers are remembered, want each address, and each name there", n)
		}
		pass(time.Second) // the addresses have their whole allowance again
		if n := guess(1); n > 5010 {
			t.Errorf("%d callers are remembered, want none with a whole allowance", n)
		}
		if _, err := g.Guess("2001:db8::ffff:0:0:1"); !fault.Is(err, fault.TooManyTries) {
			t.Errorf("a caller that is slowed down: got %v", err)
		}
		if n := guess(2600); n != 10_000 {
			t.Errorf("%d callers are remembered, want 10000", n)
		}
	})
}

func TestGuard_EndsSessionsOfTheFuture(t *testing.T) {
	t.Parallel()
	g := auth.NewGuard(byPassword(), nil, slog.New(slog.DiscardHandler))
	for ago, over := range map[time.Duration]bool{0: false, -59 * time.Second: false, -61 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			if got := g.IsOver(ago); got != over {
				t.Errorf("used %s ago: got %t, want %t", ago, got, over)
			}
		})
	}
}
