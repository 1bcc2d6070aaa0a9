package sunbird

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// Headers of callers.
const (
	tokenHeader  = "X-Authenticated-User-Token"
	userHeader   = "X-Authenticated-Userid"
	deviceHeader = "X-Device-Id"
	msgIDHeader  = "X-Msgid"
)

// caller is the user of a request.
type caller struct {
	id    string
	name  string // empty without a token
	roles []string
}

// identify returns the caller of a request, or a failure.
type identify func(h http.Header) (caller, error)

// identifyByHeader believes the gateway in front. Of two different values, one may be a caller's.
func identifyByHeader(h http.Header) (caller, error) {
	id := h.Get(userHeader)
	if len(slices.Compact(slices.Clone(h.Values(userHeader)))) > 1 {
		return caller{}, failure{http.StatusUnauthorized, "ERR_TOKEN_INVALID", "Header " + strings.ToLower(userHeader) + " has different values"}
	}
	if id == "" {
		return caller{}, failure{http.StatusUnauthorized, "ERR_TOKEN_FIELD_MISSING", "Required header " + strings.ToLower(userHeader) + " is missing"}
	}
	return caller{id: id}, nil
}

// tokenClaims are the claims that the front reads. Those that only add something may have any
// form: one that cannot be read adds nothing.
type tokenClaims struct {
	jwt.RegisteredClaims
	Name  json.RawMessage `json:"name"`
	Roles json.RawMessage `json:"roles"`
	Realm json.RawMessage `json:"realm_access"`
}

// readName returns the user's name, which is empty if the token has none.
func (c *tokenClaims) readName() string {
	var name string
	_ = json.Unmarshal(c.Name, &name)           // empty for what is no text
	return strings.ReplaceAll(name, "\x00", "") // which PostgreSQL cannot store
}

// readRoles returns the user's roles. Keycloak lists names in realm_access. Sunbird lists
// objects in roles, whose scopes do not matter here; some tokens list names there.
func (c *tokenClaims) readRoles() (roles []string) {
	var listed []json.RawMessage
	_ = json.Unmarshal(c.Roles, &listed)
	for _, raw := range listed {
		var name string
		var object struct {
			Role string `json:"role"`
		}
		if json.Unmarshal(raw, &name) == nil {
			roles = append(roles, name)
		} else if json.Unmarshal(raw, &object) == nil {
			roles = append(roles, object.Role)
		}
	}
	var realm struct {
		Roles []string `json:"roles"`
	}
	_ = json.Unmarshal(c.Realm, &realm)
	return append(roles, realm.Roles...)
}

// identifyByToken checks signature, algorithm, times and issuer.
func identifyByToken(known keys, issuer string) identify {
	options := []jwt.ParserOption{jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Alg()}), jwt.WithExpirationRequired()}
	if issuer != "" {
		options = append(options, jwt.WithIssuer(issuer))
	}
	parser := jwt.NewParser(options...)
	findKey := func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		if key := known[id]; key != nil {
			return key, nil
		}
		return nil, errors.New("the key id is unknown")
	}
	return func(h http.Header) (caller, error) {
		token := h.Get(tokenHeader)
		if token == "" {
			return caller{}, failure{http.StatusUnauthorized, "ERR_TOKEN_FIELD_MISSING", "Required field token is missing"}
		}
		var claims tokenClaims
		_, err := parser.ParseWithClaims(token, &claims, findKey)
		id := claims.Subject[strings.LastIndexByte(claims.Subject, ':')+1:]
		if err != nil || id == "" {
			return caller{}, failure{http.StatusUnauthorized, "ERR_TOKEN_INVALID", "Access denied"}
		}
		return caller{id: id, name: claims.readName(), roles: claims.readRoles()}, nil
	}
}
