package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	issuer       = "https://sso.example.org/realms/library"
	clientID     = "circulation"
	clientSecret = "a secret of the client"
	deskURL      = "https://desk.example.org"
)

// provider is a small provider of OpenID Connect: a person who is signed in there gets a code at once.
type provider struct {
	key    *ecdsa.PrivateKey
	person map[string]any           // claims of who is signed in; nil for none
	codes  map[string]url.Values    // what was asked for, by code
	change func(map[string]any)     // changes the claims of a token; may be nil
	sign   func(map[string]any) any // replaces the token; may be nil
	away   bool
	silent bool   // never answers
	broken string // the path that answers 502; empty for none
	logout any    // the address that ends a session there
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &provider{key: key, codes: map[string]url.Values{}, logout: issuer + "/logout", person: map[string]any{
		"sub": "17", "preferred_username": "ann", "groups": []string{"desk", "cooks"},
	}}
}

// RoundTrip implements http.RoundTripper: calls of the service to the provider.
func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.away {
		return nil, http.ErrServerClosed
	}
	if p.silent {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result(), nil
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case p.broken:
		w.WriteHeader(http.StatusBadGateway)
	case "/realms/library/.well-known/openid-configuration":
		writeJSON(w, map[string]any{
			"issuer": issuer, "authorization_endpoint": issuer + "/auth", "token_endpoint": issuer + "/token",
			"jwks_uri": issuer + "/keys", "end_session_endpoint": p.logout,
			"id_token_signing_alg_values_supported": []string{"ES256"},
		})
	case "/realms/library/keys":
		key := jose.JSONWebKey{Key: p.key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}
		writeJSON(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key}})
	case "/realms/library/auth":
		p.authorize(w, r.URL.Query())
	case "/realms/library/token":
		p.giveToken(w, r)
	default:
		http.NotFound(w, r)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (p *provider) authorize(w http.ResponseWriter, asked url.Values) {
	back, _ := url.Parse(asked.Get("redirect_uri"))
	q := url.Values{"state": asked["state"], "iss": {issuer}}
	if asked.Get("scope") != "openid email" {
		q.Set("error", "invalid_scope")
	} else if p.person == nil {
		q.Set("error", "login_required")
	} else {
		code := rand.Text()
		p.codes[code] = asked
		q.Set("code", code)
	}
	back.RawQuery = q.Encode()
	w.Header().Set("Location", back.String())
	w.WriteHeader(http.StatusFound)
}

func (p *provider) giveToken(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	secret, _ = url.QueryUnescape(secret)
	asked, known := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if id != clientID || secret != clientSecret || !known || asked.Get("redirect_uri") != r.FormValue("redirect_uri") ||
		asked.Get("code_challenge_method") != "S256" ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]) {
		w.WriteHeader(http.StatusBadRequest)
		writeJSON(w, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{
		"iss": issuer, "aud": clientID, "nonce": asked.Get("nonce"), "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Minute).Unix(), "auth_time": time.Now().Unix(),
	}
	for name, value := range p.person {
		claims[name] = value
	}
	if p.change != nil {
		p.change(claims)
	}
	var token any = signToken(p.key, claims)
	if p.sign != nil {
		token = p.sign(claims)
	}
	writeJSON(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": token})
}

func signToken(key *ecdsa.PrivateKey, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		(&jose.SignerOptions{}).WithHeader(jose.HeaderKey("kid"), "k"))
	if err != nil {
		panic(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		panic(err)
	}
	return token
}

// A person that the provider disables loses the session: at the next page after 5 minutes, and after 15
// minutes for forms too.
func TestOIDC_AsksTheProviderAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		p.person["groups"] = []string{"admins"}
		_, v := visitWith(t, p, byProvider())
		v.signInAt(p)
		first := v.at(v.handler)
		for range 3 { // with a session there, a page comes back at once
			pass(6 * time.Minute)
			if got := v.get("/desk/diku/list"); got.Code != http.StatusSeeOther {
				t.Fatalf("the page after 6 minutes is %d %s", got.Code, got.Body)
			}
			wantStatus(t, v.do("POST", "/desk/diku/", url.Values{}), http.StatusOK, "ann sees and changes")
			v.signInAt(p)
			v.wantSignedIn("ann")
		}
		copied := v.at(v.handler)
		p.person = nil
		pass(6 * time.Minute)
		wantStatus(t, v.signInAt(p), http.StatusUnauthorized, "did not let you in (login_required)")
		v.wantSignedOutOfPages()
		wantStatus(t, v.do("POST", "/desk/diku/", url.Values{}), http.StatusOK, "ann")
		pass(9 * time.Minute)
		v.wantSignedOut()
		copied.wantSignedOut()
		first.wantSignedOut()
	})
}

func TestOIDC_ProviderAway(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.away = true
	_, v := visitWith(t, p, byProvider())
	wantStatus(t, v.get("/desk/diku/sign-in"), http.StatusServiceUnavailable, "cannot be reached")
	p.away = false
	back := v.goOn(p, v.get("/desk/diku/sign-in"))
	p.away = true
	wantStatus(t, v.get(back), http.StatusServiceUnavailable, "cannot be reached")
	p.away = false
	p.broken = "/realms/library/.well-known/openid-configuration" // which is asked once
	wantWayTo(t, v.get(back), "/desk/diku/")                      // the page loads itself again
	v.wantSignedIn("ann")
	wantStatus(t, v.get(back), http.StatusUnauthorized, "did not begin in this browser")
}

// A call to a silent provider delays no other visitor.
func TestOIDC_ProviderSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		p.silent = true
		_, v := visitWith(t, p, byProvider())
		began := time.Now()
		var others sync.WaitGroup
		defer others.Wait()
		for range 3 {
			other := v.at(v.handler)
			others.Go(func() {
				wantStatus(t, other.get("/desk/diku/sign-in"), http.StatusServiceUnavailable, "cannot be reached")
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("the answer took %v, want 5s", took)
				}
			})
		}
		synctest.Wait()
		p.silent = false
		v.signInAt(p)
		v.wantSignedIn("ann")
	})
}

// A person who fills in a form while another page asks the provider again can still send it.
func TestOIDC_FormsOutliveTheProvidersWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		_, v := visitWith(t, p, byProvider())
		v.signInAt(p)
		form := url.Values{"token": {v.token()}}
		pass(6 * time.Minute)
		v.signInAt(p) // in another tab
		wantWayTo(t, v.do("POST", "/desk/diku/sign-out", form), "/desk/diku/signed-out")
	})
}
