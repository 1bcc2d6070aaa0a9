package sunbird

import (
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

// identifyByHeader believes the gateway in front.
func identifyByHeader(h http.Header) (caller, error) {
	id := h.Get(userHeader)
	if id == "" {
		return caller{}, failure{http.StatusUnauthorized, "ERR_TOKEN_FIELD_MISSING", "Required header " + strings.ToLower(userHeader) + " is missing"}
	}
	return caller{id: id}, nil
}

// tokenClaims are the claims that the front reads.
type tokenClaims struct {
	jwt.RegisteredClaims
	Name  string   `json:"name"`
	Roles []string `json:"roles"`
	Realm struct {
		Roles []string `json:"roles"`
	} `json:"realm_access"`
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
		name := strings.ReplaceAll(claims.Name, "\x00", "") // which PostgreSQL cannot store
		return caller{id: id, name: name, roles: slices.Concat(claims.Roles, claims.Realm.Roles)}, nil
	}
}
