package app_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/devpostgres/testserver"
)

// The fronts believe a header with the user's id, or check a token. Only with a token may a page
// of another site call.
func TestFronts_OfForeignPages(t *testing.T) {
	t.Parallel()
	testserver.URL(t)
	const foreign = "http://evil.example.org"
	loopback := []string{"SUNBIRD_ADDR=127.0.0.1:0", "MUTEX_ADDR=127.0.0.1:0"}
	everywhere := []string{
		"SUNBIRD_ADDR=0.0.0.0:0", "MUTEX_ADDR=0.0.0.0:0", "STAFF_AUTH=basic", "STAFF_PASSWORD=correct horse",
	}
	gateway := append([]string{"STAFF_AUTH=gateway"}, loopback...)
	tokens := append([]string{"SUNBIRD_AUTH=token", "SUNBIRD_KEYS=" + writeKey(t)}, loopback...)
	for _, tt := range []struct {
		name, front string
		environ     []string
		foreignHost int  // the status of a program that names another host
		rebound     int  // the status of a page whose name resolves to this address
		cors        bool // other sites may call, but need a token
	}{
		{name: "the mutex on loopback", front: "mutex", environ: loopback, foreignHost: 403, rebound: 403},
		{name: "the mutex on each address", front: "mutex", environ: everywhere, foreignHost: 200, rebound: 403},
		{name: "the mutex behind a gateway", front: "mutex", environ: gateway, foreignHost: 200, rebound: 200},
		{name: "Sunbird on loopback", front: "sunbird", environ: loopback, foreignHost: 403, rebound: 403},
		{name: "Sunbird on each address", front: "sunbird", environ: everywhere, foreignHost: 200, rebound: 403},
		{name: "Sunbird behind a gateway", front: "sunbird", environ: gateway, foreignHost: 200, rebound: 200},
		{name: "Sunbird with tokens", front: "sunbird", environ: tokens, foreignHost: 401, rebound: 401, cors: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at, err := url.Parse(strings.Replace(start(t, tt.environ...).URL(tt.front), "0.0.0.0", "127.0.0.1", 1))
			if err != nil {
				t.Fatal(err)
			}
			served, refused := 200, 403
			if tt.cors {
				served, refused = 401, 401
			}
			own, evil := "127.0.0.1:"+at.Port(), "evil.example.org:"+at.Port()
			for _, by := range []struct {
				name, host, origin string
				status             int
			}{
				{name: "a program", host: own, status: served},
				{name: "a page of the front's own address", host: own, origin: "http://" + own, status: served},
				{name: "a page of another site", host: own, origin: foreign, status: refused},
				{name: "a foreign Host", host: evil, status: tt.foreignHost},
				{name: "a page whose name resolves to this address", host: evil, origin: "http://" + evil, status: tt.rebound},
			} {
				r := lockRequest(t, tt.front, at.String())
				r.Host = by.host
				if by.origin != "" {
					r.Header.Set("Origin", by.origin)
				}
				if status, cors := send(t, r); status != by.status || cors != tt.cors {
					t.Errorf("%s: status %d, other sites may read it: %t, want %d, %t", by.name, status, cors, by.status, tt.cors)
				}
			}
			preflight := lockRequest(t, tt.front, at.String())
			preflight.Method = http.MethodOptions
			preflight.Header = http.Header{"Origin": {foreign}, "Access-Control-Request-Method": {http.MethodPost}}
			if status, cors := send(t, preflight); cors != tt.cors || cors && status != http.StatusOK {
				t.Errorf("a preflight: status %d, allowed: %t, want %t", status, cors, tt.cors)
			}
		})
	}
}

// writeKey returns a folder with a public key.
func writeKey(t *testing.T) string {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: key})
	if err := os.WriteFile(filepath.Join(folder, "key-1.pem"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// lockRequest takes a new lock for ann.
func lockRequest(t *testing.T, front, at string) *http.Request {
	t.Helper()
	key := uuid.NewString()
	path, body := "/api/lock/"+key+"/", ""
	if front == "sunbird" {
		path = "/v1/lock/create"
		body = `{"request":{"resourceId":"` + key +
			`","resourceType":"content","resourceInfo":"{}","createdBy":"ann","creatorInfo":"{}"}}`
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"X-User-Id": {"ann"}, "X-Authenticated-Userid": {"ann"}, "X-Device-Id": {"desk"}}
	return r
}

// send returns the answer's status, and whether pages of other sites may read it.
func send(t *testing.T, r *http.Request) (status int, cors bool) {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode, answer.Header.Get("Access-Control-Allow-Origin") != ""
}
