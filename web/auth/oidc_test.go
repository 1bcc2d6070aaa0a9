package auth_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/web/auth"
)

func byProvider() auth.Settings {
	return auth.Settings{
		Auth: auth.OIDC, Limits: byPassword().Limits,
		OIDC: auth.OIDCSettings{
			Issuer: issuer, Client: clientID, Secret: clientSecret, URL: deskURL, GroupsClaim: "groups",
			Scopes: []string{"email"},
			Grants: []string{"desk=" + maySee, " admins = " + maySee + " " + mayPut, "owners=*"},
		},
	}
}

// visitWith returns a visitor of a site with the provider. The site is reached by https.
func visitWith(t *testing.T, p *provider, s auth.Settings) (site, *visitor) {
	t.Helper()
	at := newSite(s)
	at.rt = p
	v := at.visit(t)
	v.header.Set("X-Forwarded-Proto", "https")
	return at, v
}

// goOn opens the page that a notice goes to by itself, at the provider, and returns its way back.
func (v *visitor) goOn(p *provider, notice *httptest.ResponseRecorder) (back string) {
	v.t.Helper()
	_, address, ok := strings.Cut(notice.Header().Get("Refresh"), "0; url=")
	if notice.Code != http.StatusOK || !ok || !strings.Contains(html.UnescapeString(notice.Body.String()), address) {
		v.t.Fatalf("the way to the provider is %d %s %v", notice.Code, notice.Body, notice.Header())
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(v.t.Context(), http.MethodGet, address, nil))
	back, ok = strings.CutPrefix(w.Header().Get("Location"), deskURL)
	if !ok {
		v.t.Fatalf("the provider sends on to %q", w.Header().Get("Location"))
	}
	return back
}

// signInAt signs in at the provider for a page.
func (v *visitor) signInAt(p *provider) *httptest.ResponseRecorder {
	v.t.Helper()
	return v.get(v.goOn(p, v.get("/desk/diku/sign-in?to=%2Fdesk%2Fdiku%2Flist%3Fx%3D1")))
}

func TestOIDC_SignIn(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s, v := visitWith(t, p, byProvider())
	v.wantSignedOut()
	in := v.signInAt(p)
	if to := in.Header().Get("Location"); in.Code != http.StatusSeeOther || to != "/desk/diku/list?x=1" {
		t.Fatalf("the way back is %d %s to %q", in.Code, in.Body, to)
	}
	v.wantSignedIn("ann")
	s.registry = nil
	v.at(s.start(t)).wantSignedIn("ann")
	for name, c := range v.cookies {
		if !strings.HasPrefix(name, "__Host-") || !c.Secure || !c.HttpOnly ||
			c.SameSite != http.SameSiteLaxMode || c.Path != "/" ||
			strings.Contains(name, "flow") {
			t.Errorf("the visitor has the cookie %v", c)
		}
	}
	wantStatus(t, v.do("POST", "/desk/diku/", url.Values{}), http.StatusForbidden,
		"Access requires permission: x.item.put. You are signed in as ann.")
	v.header.Set("Authorization", basic("ann:"+clientSecret))
	v.cookies = map[string]*http.Cookie{}
	v.wantSignedOut() // no program signs in
	wantStatus(t, v.do("POST", "/desk/diku/sign-in", url.Values{}), http.StatusMethodNotAllowed, "")
}

// Who has the secret makes cookies, so another secret ends all sessions.
func TestOIDC_SessionEndsWithTheSecret(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s, v := visitWith(t, p, byProvider())
	v.signInAt(p)
	s.registry = nil
	s.settings.OIDC.Secret += "!"
	v.at(s.start(t)).wantSignedOut()
}

// Another person in the same browser does not get the session of the first one.
func TestOIDC_SessionIsOnePersons(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	_, v := visitWith(t, p, byProvider())
	v.signInAt(p)
	anns := v.at(v.handler)
	p.person["preferred_username"] = "bo"
	v.signInAt(p)
	v.wantSignedIn("bo")
	v.signOut()
	v.wantSignedOut()
	anns.wantSignedIn("ann")
}

// A time in the future, such as one in milliseconds, is none at which a person signed in.
func TestOIDC_SignInOfTheFutureBeginsNow(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.change = func(claims map[string]any) { claims["auth_time"] = time.Now().UnixMilli() }
	_, v := visitWith(t, p, byProvider())
	v.signInAt(p)
	v.wantSignedIn("ann")
}

func TestOIDC_SignOutHereAlone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p *provider){
		"no address there":       func(p *provider) { p.logout = nil },
		"a bad address there":    func(p *provider) { p.logout = "https://[::1" },
		"no text as the address": func(p *provider) { p.logout = 1 },
		"the provider is away":   func(p *provider) { p.away = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			change(p)
			_, v := visitWith(t, p, byProvider())
			left := v.get("/desk/diku/signed-out")
			wantStatus(t, left, http.StatusOK, `href="../../desk/diku/"`)
			if to := left.Header().Get("Refresh"); to != "" {
				t.Errorf("the browser goes on to %s", to)
			}
		})
	}
}

func TestOIDC_GroupsGrantPermissions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, claim string
		groups      any
		body        string // of the page; empty for a refusal
	}{
		{name: "one that may see", claim: "groups", groups: []string{"desk"}, body: "ann sees"},
		{name: "one that may change", claim: "groups", groups: []string{"admins"}, body: "ann sees and changes"},
		{name: "one with all", claim: "groups", groups: []string{"x", "owners"}, body: "ann sees and changes"},
		{name: "two", claim: "groups", groups: []string{"desk", "admins"}, body: "ann sees and changes"},
		{name: "a claim in an object", claim: "roles.list", groups: nil, body: "ann sees"},
		{name: "unknown ones", claim: "groups", groups: []string{"cooks", "*", ""}},
		{name: "a text in place of a list", claim: "groups", groups: "desk"},
		{name: "numbers", claim: "groups", groups: []int{1}},
		{name: "none", claim: "groups", groups: nil},
		{name: "a claim that leads nowhere", claim: "sub.list", groups: []string{"desk"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.person["groups"] = tt.groups
			p.person["roles"] = map[string]any{"list": []string{"desk"}}
			settings := byProvider()
			settings.OIDC.GroupsClaim = tt.claim
			_, v := visitWith(t, p, settings)
			in := v.signInAt(p)
			if tt.body == "" {
				wantStatus(t, in, http.StatusForbidden, "You are signed in as ann, but none of your groups may use these pages")
				v.wantSignedOut()
				return
			}
			if got := v.get("/desk/diku/").Body.String(); got != tt.body {
				t.Errorf("got %q, want %q", got, tt.body)
			}
		})
	}
}

func TestOIDC_TrustsTheProviderAlone(t *testing.T) {
	t.Parallel()
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string, value any) func(*provider) {
		return func(p *provider) { p.change = func(c map[string]any) { c[name] = value } }
	}
	for _, tt := range []struct {
		name   string
		change func(p *provider)
		want   string
	}{
		{name: "another nonce", change: set("nonce", "x"), want: "cannot be trusted"},
		{name: "no nonce", change: set("nonce", ""), want: "cannot be trusted"},
		{name: "another audience", change: set("aud", "shop"), want: "cannot be trusted"},
		{name: "another issuer", change: set("iss", "https://evil.example"), want: "cannot be trusted"},
		{name: "an old token", change: set("exp", 1), want: "cannot be trusted"},
		{
			name: "an old sign-in", change: set("auth_time", time.Now().Add(-13*time.Hour).Unix()),
			want: "too old",
		},
		{name: "no name", change: set("sub", ""), want: "sent no name"},
		{name: "another key", change: func(p *provider) {
			p.sign = func(c map[string]any) any { return signToken(other, c) }
		}, want: "cannot be trusted"},
		{name: "no signature", change: func(p *provider) {
			p.sign = func(c map[string]any) any {
				body, _ := json.Marshal(c)
				encode := base64.RawURLEncoding.EncodeToString
				return encode([]byte(`{"alg":"none"}`)) + "." + encode(body) + "."
			}
		}, want: "cannot be trusted"},
		{
			name: "no token", change: func(p *provider) { p.sign = func(map[string]any) any { return nil } },
			want: "cannot be trusted",
		},
		{
			name: "no person is signed in there", change: func(p *provider) { p.person = nil },
			want: "did not let you in",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			if tt.name == "no name" {
				delete(p.person, "preferred_username")
			}
			tt.change(p)
			_, v := visitWith(t, p, byProvider())
			wantStatus(t, v.signInAt(p), http.StatusUnauthorized, tt.want)
			v.wantSignedOut()
		})
	}
}

// The page of a refused sign-in does not say why. The log does, for the operator.
func TestOIDC_LogsWhyASignInIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(p *provider, s *auth.Settings)
		want   string // in the log
	}{
		{name: "another secret", want: "invalid_grant", change: func(_ *provider, s *auth.Settings) {
			s.OIDC.Secret = "the secret of last year"
		}},
		{name: "another client", want: "expected audience", change: func(p *provider, _ *auth.Settings) {
			p.person["aud"] = "shop"
		}},
		{name: "a clock that is behind", want: "token is expired", change: func(p *provider, _ *auth.Settings) {
			p.person["exp"] = 1
		}},
		{name: "keys that are away", want: "502 Bad Gateway", change: func(p *provider, _ *auth.Settings) {
			p.sign = func(claims map[string]any) any {
				p.broken = "/realms/library/keys"
				return signToken(p.key, claims)
			}
		}},
		{name: "no group", want: "none of your groups", change: func(p *provider, _ *auth.Settings) {
			p.person["groups"] = nil
		}},
		{name: "no person", want: "login_required", change: func(p *provider, _ *auth.Settings) { p.person = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, settings := newProvider(t), byProvider()
			tt.change(p, &settings)
			at := newSite(settings)
			var log bytes.Buffer
			at.rt, at.log = p, &log
			v := at.visit(t)
			v.header.Set("X-Forwarded-Proto", "https")
			if in := v.signInAt(p); in.Code < http.StatusBadRequest {
				t.Fatalf("the sign-in is %d", in.Code)
			}
			if line := log.String(); !strings.Contains(line, "level=WARN") || !strings.Contains(line, tt.want) ||
				strings.Count(line, "\n") != 1 || strings.Contains(line, settings.OIDC.Secret) {
				t.Errorf("logged %q, want one line with %q", line, tt.want)
			}
		})
	}
}

// What an attacker may send to the way back begins no session.
func TestOIDC_WayBackIsOneVisitors(t *testing.T) {
	t.Parallel()
	const foreign = "did not begin in this browser"
	tests := []struct {
		name string
		back func(v *visitor, p *provider, back string) string // returns another way back
		want string
	}{
		{name: "of another browser", want: foreign, back: func(v *visitor, _ *provider, back string) string {
			v.cookies = map[string]*http.Cookie{}
			return back
		}},
		{name: "with another state", want: foreign, back: func(_ *visitor, _ *provider, back string) string {
			return strings.Replace(back, "state=", "state=A", 1)
		}},
		{name: "with a longer state", want: foreign, back: func(_ *visitor, _ *provider, back string) string {
			return back + "A" // the state is the last parameter
		}},
		{name: "without a state", want: foreign, back: func(_ *visitor, _ *provider, back string) string {
			return strings.Replace(back, "state=", "stat=", 1)
		}},
		{name: "for the second time", want: foreign, back: func(v *visitor, _ *provider, back string) string {
			v.get(back)
			delete(v.cookies, "__Host-desk_session_diku")
			return back
		}},
		{name: "too late", want: foreign, back: func(_ *visitor, _ *provider, back string) string {
			pass(10 * time.Minute)
			return back
		}},
		{name: "of another provider", want: "Another sign-in", back: func(_ *visitor, _ *provider, back string) string {
			return strings.Replace(back, "iss=https", "iss=http", 1)
		}},
		{name: "with another's code", want: "did not confirm", back: func(v *visitor, p *provider, back string) string {
			_, eve := visitWith(v.t, p, byProvider())
			stolen, _ := url.Parse(eve.goOn(p, eve.get("/desk/diku/sign-in")))
			own, _ := url.Parse(back)
			q := own.Query()
			q.Set("code", stolen.Query().Get("code"))
			return own.Path + "?" + q.Encode()
		}},
		{name: "without a code", want: "did not confirm", back: func(_ *visitor, _ *provider, back string) string {
			return strings.Replace(back, "code=", "cod=", 1)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProvider(t)
				_, v := visitWith(t, p, byProvider())
				back := v.goOn(p, v.get("/desk/diku/sign-in"))
				wantStatus(t, v.get(tt.back(v, p, back)), http.StatusUnauthorized, tt.want)
				v.wantSignedOut()
			})
		})
	}
}

func (v *visitor) wantSignedOutOfPages() {
	v.t.Helper()
	if got := v.get("/desk/diku/list"); got.Code != http.StatusSeeOther {
		v.t.Errorf("the page is %d %s", got.Code, got.Body)
	}
}

func TestOIDC_SignOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		_, v := visitWith(t, p, byProvider())
		v.signInAt(p)
		first := v.at(v.handler)
		pass(time.Minute)
		v.signInAt(p) // the same session
		copied := v.at(v.handler)
		if out := v.signOut(); out.Code != http.StatusSeeOther || out.Header().Get("Location") != "/desk/diku/signed-out" {
			t.Fatalf("the sign-out is %d %s", out.Code, out.Body)
		}
		v.wantSignedOut()
		copied.wantSignedOut()
		first.wantSignedOut()
		left := v.get("/desk/diku/signed-out")
		want := "0; url=" + issuer + "/logout?client_id=circulation&post_logout_redirect_uri=" +
			"https%3A%2F%2Fdesk.example.org%2Fdesk%2F"
		if got := left.Header().Get("Refresh"); got != want {
			t.Errorf("the browser goes on to %q, want %q", got, want)
		}
	})
}
