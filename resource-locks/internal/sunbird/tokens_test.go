package sunbird

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func TestServer_ChecksTokens(t *testing.T) {
	t.Parallel()
	f := newHarness(t, nil)
	later := time.Now().Add(time.Hour).Unix()
	valid := func() jwt.MapClaims { return jwt.MapClaims{"sub": "f:x:u1", "iss": issuer, "exp": later} }
	with := func(name string, value any) jwt.MapClaims {
		claims := valid()
		claims[name] = value
		return claims
	}
	foreign := func(method jwt.SigningMethod, key any, kid any) string {
		token := jwt.NewWithClaims(method, valid())
		token.Header["kid"] = kid
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := sign(t, valid())
	refused := map[string]string{
		"no JWT":                  "abc",
		"two parts":               good[:strings.LastIndex(good, ".")],
		"a wrong signature":       good[:len(good)-6] + "AAAAAA",
		"an expired one":          sign(t, with("exp", time.Now().Add(-time.Second).Unix())),
		"one that never expires":  sign(t, jwt.MapClaims{"sub": "u1", "iss": issuer}),
		"one of another issuer":   sign(t, with("iss", "https://elsewhere.example.org")),
		"one of later":            sign(t, with("nbf", later)),
		"one without a user":      sign(t, with("sub", "")),
		"one with an empty user":  sign(t, with("sub", "f:x:")),
		"one with a number":       sign(t, with("sub", 7)),
		"an unknown key":          foreign(jwt.SigningMethodRS256, signingKey(), "key-2"),
		"no key id":               foreign(jwt.SigningMethodRS256, signingKey(), nil),
		"a key id that is a list": foreign(jwt.SigningMethodRS256, signingKey(), []string{keyID}),
		"another RSA algorithm":   foreign(jwt.SigningMethodRS512, signingKey(), keyID),
		"an HMAC algorithm":       foreign(jwt.SigningMethodHS256, []byte(publicPEM(t, &signingKey().PublicKey)), keyID),
		"no algorithm":            foreign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, keyID),
	}
	for name, token := range refused {
		t.Run(name, func(t *testing.T) {
			f.call("DELETE", "/v1/lock/retire", body("resourceId", "x", "resourceType", "content"), tokenHeader, token,
				deviceHeader, "d").
				refused(t, 401, "ERR_TOKEN_INVALID", "Access denied")
		})
	}
	for _, sub := range []string{"u1", "f:x:u1", ":u1"} {
		f.call("DELETE", "/v1/lock/retire", body("resourceId", "x", "resourceType", "content"), tokenHeader,
			sign(t, with("sub", sub)), deviceHeader, "d",
			userHeader, "u2").refused(t, 400, "ERR_LOCK_RETIRING_FAILED", notLocked)
	}
	f.call("DELETE", "/v1/lock/retire", "", userHeader, "u1", deviceHeader, "d").
		refused(t, 401, "ERR_TOKEN_FIELD_MISSING", "Required field token is missing")
}

// A claim that only adds a role or a name refuses no token, in whichever form it comes.
func TestServer_AcceptsTokensOfASunbird(t *testing.T) {
	t.Parallel()
	const admin = "LOCK_ADMIN"
	scope := []any{map[string]any{"organisationId": "0123"}}
	for _, tt := range []struct {
		name   string
		extra  jwt.MapClaims
		role   string // SUNBIRD_ADMIN_ROLE
		forces bool
	}{
		{name: "roles with scopes, as Sunbird makes them", role: admin, forces: true, extra: jwt.MapClaims{
			"aud": []string{
				"https://sunbird.example.org/auth/realms/sunbird", "account",
			}, "typ": "Bearer", "azp": "portal", "session_state": "0f",
			"scope": "", "preferred_username": "ann", "realm_access": map[string]any{"roles": []string{"offline_access"}},
			"resource_access": map[string]any{"account": map[string]any{"roles": []string{"view-profile"}}},
			"roles": []any{
				map[string]any{"role": "CONTENT_CREATOR", "scope": scope}, map[string]any{"role": admin, "scope": scope},
			},
		}},
		{name: "names", role: admin, forces: true, extra: jwt.MapClaims{"roles": []any{7, nil, []string{"x"}, admin}}},
		{name: "another role", role: admin, extra: jwt.MapClaims{"roles": []any{map[string]any{"role": "PUBLIC"}}}},
		{name: "a role that is a number", role: admin, extra: jwt.MapClaims{"roles": []any{map[string]any{"role": 7}}}},
		{name: "roles that are a text", role: admin, extra: jwt.MapClaims{"roles": admin, "realm_access": admin}},
		{
			name: "roles that are an object", role: admin,
			extra: jwt.MapClaims{"roles": map[string]any{"role": admin}, "realm_access": []string{admin}},
		},
		{name: "a name that is no text", role: admin, extra: jwt.MapClaims{"name": []string{"Ann"}}},
		{name: "an empty role grants nothing", extra: jwt.MapClaims{"roles": []string{""}}},
		{name: "a role without a name grants nothing", extra: jwt.MapClaims{"roles": []any{map[string]any{"scope": scope}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newHarness(t, func(c *Settings) { c.AdminRole = tt.role })
			u := f.user("u1", "Ann", "d1")
			u.extra = tt.extra
			u.create("do_1").wants(t, "api.lock.create")
			if tt.forces {
				u.force("do_1", "left").wants(t, "api.lock.force")
			} else {
				u.force("do_1", "left").refused(t, 403, "ERR_LOCK_FORCING_FAILED", "")
			}
		})
	}
}

// No text is a token without the key's signature, and of a signed one only checked claims count.
func FuzzIdentifyByToken(f *testing.F) {
	later := time.Now().Add(24 * time.Hour).Unix()
	for _, claims := range []string{
		fmt.Sprintf(`{"sub":"f:x:u1","iss":%q,"exp":%d,"name":"Ann","roles":["a",{"role":"b"},7]}`, issuer, later),
		fmt.Sprintf(`{"sub":"u\u00001","iss":%q,"exp":%d.5,"name":["a"],"realm_access":{"roles":[null]}}`, issuer, later),
		fmt.Sprintf(`{"sub":"","iss":%q,"exp":"%d"}`, issuer, later), `{"exp":1e400}`, `[]`,
		`{"sub":"u1","exp":-1,"nbf":null}`,
	} {
		f.Add([]byte(`{"alg":"RS256","kid":"key-1","typ":"JWT"}`), []byte(claims), []byte("AAAA"))
		f.Add([]byte(`{"alg":"none","kid":"key-1"}`), []byte(claims), []byte{})
	}
	check := identifyByToken(keys{keyID: &signingKey().PublicKey}, issuer)
	encode := base64.RawURLEncoding.EncodeToString
	f.Fuzz(func(t *testing.T, header, claims, signature []byte) {
		text := encode(header) + "." + encode(claims)
		if found, err := check(http.Header{tokenHeader: {text + "." + encode(signature)}}); err == nil {
			t.Fatalf("%s is the token of %+v without a signature", text, found)
		}
		signed, err := jwt.SigningMethodRS256.Sign(text, signingKey())
		if err != nil {
			t.Fatal(err)
		}
		found, err := check(http.Header{tokenHeader: {text + "." + encode(signed)}})
		if err != nil {
			if _, ok := errors.AsType[failure](err); !ok {
				t.Errorf("%s: got %#v, want a failure", claims, err)
			}
			return
		}
		if found.id == "" || strings.ContainsRune(found.name, 0) { // the engine refuses a NUL in an id
			t.Errorf("%s: the caller is %+v", claims, found)
		}
	})
}
