package integration_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/integration-tests/stack"
)

// provider is a small provider of OpenID Connect. It signs everyone in as the person in its form.
type provider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu     sync.Mutex
	person string                // who is signed in there
	asked  map[string]url.Values // by code
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	o := &provider{key: key, asked: map[string]url.Values{}}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

func (o *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		writeRecord(w, record{
			"issuer": o.URL, "authorization_endpoint": o.URL + "/auth", "token_endpoint": o.URL + "/token",
			"jwks_uri": o.URL + "/keys", "end_session_endpoint": o.URL + "/logout",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	case "/keys":
		encode := base64.RawURLEncoding.EncodeToString
		writeRecord(w, record{"keys": []record{{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k", "n": encode(o.key.N.Bytes()),
			"e": encode(big.NewInt(int64(o.key.E)).Bytes()),
		}}})
	case "/auth":
		o.authorize(w, r)
	case "/token":
		asked := o.asked[r.FormValue("code")]
		writeRecord(w, record{"access_token": "x", "token_type": "Bearer", "id_token": o.signToken(record{
			"iss": o.URL, "aud": "circulation", "nonce": asked.Get("nonce"), "iat": time.Now().Unix(),
			"exp": time.Now().Add(time.Minute).Unix(), "sub": "17", "preferred_username": o.person, "groups": []string{"desk"},
		})})
	case "/logout":
		o.person = ""
		http.Redirect(w, r, r.FormValue("post_logout_redirect_uri"), http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

// authorize asks who the person is, or sends a person who is signed in back with a code.
func (o *provider) authorize(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		o.person = r.PostFormValue("person")
	}
	if o.person == "" {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!DOCTYPE html><html lang="en"><title>Library sign-on</title><link rel="icon" href="data:,">
			<form method="post"><label>Person <input name="person"></label><button>Enter</button></form>`))
		return
	}
	code := rand.Text()
	o.asked[code] = r.URL.Query()
	back := url.Values{"state": r.URL.Query()["state"], "code": {code}}
	http.Redirect(w, r, r.URL.Query().Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
}

// signToken returns a JSON Web Token with the claims.
func (o *provider) signToken(claims record) string {
	encode := func(v record) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	text := encode(record{"alg": "RS256", "kid": "k"}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, o.key, crypto.SHA256, sum[:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func writeRecord(w http.ResponseWriter, v record) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// A person signs in at the provider in a real browser, may do what the group grants, and signs out
// here and there.
func TestStaffAccess_ByOpenIDConnect(t *testing.T) {
	t.Parallel()
	sso := startProvider(t)
	target := make(chan *url.URL, 1) // the address of a circulation that is not started yet
	circulation := sync.OnceValue(func() *url.URL { return <-target })
	desk := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(circulation())
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(desk.Close)
	p := startPair(t, stack.Options{CirculationEnv: slices.Concat(disableLock(), []string{
		"STAFF_AUTH=oidc", "STAFF_URL=" + desk.URL, "STAFF_OIDC_ISSUER=" + sso.URL, "STAFF_OIDC_CLIENT=circulation",
		"STAFF_OIDC_SECRET=a secret of the client", "STAFF_OIDC_GRANTS=desk=circulation.check-out-history.collection.get",
	})}, 1)
	to, err := url.Parse(p.Circulations[0])
	if err != nil {
		t.Fatal(err)
	}
	target <- to
	history := desk.URL + "/staff/" + p.Storage.Tenant + "/check-outs"
	tab := chromium.Open(t)
	tab.Goto(history)
	tab.Fill("Person", clerk)
	tab.Click("Enter")
	tab.See("Check-out history", "Signed in as "+clerk)
	if tab.URL() != history {
		t.Errorf("the sign-in leads to %s", tab.URL())
	}
	tab.Gone("Timing") // the group does not grant it
	tab.Goto(strings.TrimSuffix(history, "check-outs") + "timing")
	tab.See("Access requires permission", "You are signed in as "+clerk)
	tab.Goto(history)
	tab.Click("Sign out")
	tab.See("Which library?") // after the provider has ended its session too
	tab.Goto(history)
	tab.Find("Person")
}
