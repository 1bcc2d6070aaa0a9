package sunbird

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"checkoutlock/config"
)

func publicPEM(t *testing.T, key *rsa.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func certificatePEM(t *testing.T, key *rsa.PrivateKey) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func jwks(t *testing.T, key *rsa.PublicKey, kid string) string {
	t.Helper()
	set := map[string]any{"keys": []map[string]string{
		{"kty": "EC", "kid": "other", "crv": "P-256", "x": "AA", "y": "AA"},
		{
			"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
		},
	}}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writeKeys returns a folder with the files.
func writeKeys(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoadKeys(t *testing.T) {
	t.Parallel()
	key := signingKey()
	public := publicPEM(t, &key.PublicKey)
	folder := writeKeys(t, map[string]string{
		"a.pem": public, "b": public, "c.d": public, "e.crt": certificatePEM(t, key), ".hidden": "x",
	})
	if err := os.Mkdir(filepath.Join(folder, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	found, err := loadKeys(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c.d", "e"} {
		if found[id] == nil || !found[id].Equal(&key.PublicKey) {
			t.Errorf("the key %s is missing in %v", id, found)
		}
	}
	if len(found) != 4 {
		t.Errorf("%d keys were found", len(found))
	}
	set := writeKeys(t, map[string]string{"keys.json": jwks(t, &key.PublicKey, "k")})
	found, err = loadKeys(filepath.Join(set, "keys.json"))
	if err != nil || len(found) != 1 || !found["k"].Equal(&key.PublicKey) {
		t.Errorf("the set has %v, %v", found, err)
	}
	wrong := writeKeys(t, map[string]string{
		"text.json": "x", "empty.json": `{"keys":[]}`,
		"short.json":  `{"keys":[{"kty":"RSA","kid":"k","n":"AQAB","e":"AQAB"}]}`,
		"base64.json": `{"keys":[{"kty":"RSA","kid":"k","n":"%","e":"AQAB"}]}`,
	})
	for path, want := range map[string]string{
		filepath.Join(wrong, "text.json"):   "invalid character",
		filepath.Join(wrong, "empty.json"):  "there is no RSA key",
		filepath.Join(wrong, "short.json"):  `keys[0] "k" has no RSA key`,
		filepath.Join(wrong, "base64.json"): `keys[0] "k" has no RSA key`,
		filepath.Join(wrong, "absent"):      "no such file",
		wrong:                               "base64.json",
		t.TempDir():                         "there is no RSA key",
		writeKeys(t, map[string]string{"private.pem": "no PEM"}):   "private.pem",
		writeKeys(t, map[string]string{"not.pem": "-----BEGIN X"}): "not.pem",
	} {
		if _, err := loadKeys(path); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "SUNBIRD_KEYS") {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	folder := writeKeys(t, map[string]string{"k.pem": publicPEM(t, &signingKey().PublicKey)})
	tests := map[string]struct {
		environ []string
		want    string // in the error; empty is none
	}{
		"off":                      {nil, ""},
		"off with bad settings":    {[]string{"SUNBIRD_LOCK_TTL=1ms"}, ""},
		"a header":                 {[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header"}, ""},
		"tokens":                   {[]string{"SUNBIRD_ADDR=127.0.0.1:9002", "SUNBIRD_KEYS=" + folder}, ""},
		"tokens with no such keys": {[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_KEYS=/keys"}, "/keys: no such file"},
		"tokens without keys":      {[]string{"SUNBIRD_ADDR=:9002"}, "SUNBIRD_KEYS"},
		"another authentication": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=none"}, `SUNBIRD_AUTH is "none", allowed: token, header`,
		},
		"an address without a port": {[]string{"SUNBIRD_ADDR=localhost", "SUNBIRD_AUTH=header"}, "SUNBIRD_ADDR"},
		"too short a time": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header", "SUNBIRD_LOCK_TTL=1ms"},
			"SUNBIRD_LOCK_TTL is 1ms, allowed: 1s to 8760h",
		},
		"a check that is no URL": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header", "SUNBIRD_RESOURCE_CHECK_URL=http:content"},
			"SUNBIRD_RESOURCE_CHECK_URL",
		},
		"a check at no such port": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header", "SUNBIRD_RESOURCE_CHECK_URL=http://content:99999"},
			"SUNBIRD_RESOURCE_CHECK_URL",
		},
		"a check": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header", "SUNBIRD_RESOURCE_CHECK_URL=http://content:9000"}, "",
		},
		"a webhook": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header", "SUNBIRD_NOTICE_URL=https://hooks.example.org/a?b=c"}, "",
		},
		"a masked webhook": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header", "SUNBIRD_NOTICE_URL=ftp://hooks.example.org/secret"},
			`SUNBIRD_NOTICE_URL is "****cret", allowed: an http or https URL`,
		},
		"an empty type": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header", "SUNBIRD_RESOURCE_TYPES=content,,org"},
			"SUNBIRD_RESOURCE_TYPES",
		},
		"a blank before a type": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header", "SUNBIRD_RESOURCE_TYPES=content, org"},
			`SUNBIRD_RESOURCE_TYPES is " org"`,
		},
		"a blank before an administrator": {
			[]string{"SUNBIRD_ADDR=:9002", "SUNBIRD_AUTH=header", "SUNBIRD_ADMINS=ann, bo"}, `SUNBIRD_ADMINS is " bo"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c Settings
			err := config.Load(&c, tt.environ)
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
