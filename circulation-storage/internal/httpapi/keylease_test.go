package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const keysPath = "/check-out-request-storage"

// keyAPI is the endpoint of a tenant of its own.
func keyAPI(t *testing.T) (a api, headers map[string]string) {
	db, id := pgtest.New(t)
	a = newAPI(t, httpapi.KeyLeaseRoutes(postgres.NewKeyLeaseStore(db)))
	return a, map[string]string{okapi.TenantHeader: id.String()}
}

func leaseBody(key, lease string) string {
	return fmt.Sprintf(`{"key":%q,"bodyHash":%q,"claimId":%q,"leaseMs":60000}`, key, strings.Repeat("aB", 32), lease)
}

func TestKeyLeaseRoutes_LeaseAndFinish(t *testing.T) {
	t.Parallel()
	a, tenant := keyAPI(t)
	lease, other := uuid.NewString(), uuid.NewString()
	first := a.call("POST", keysPath, leaseBody("k", lease), tenant)
	var granted schemas.KeyLease
	if err := json.Unmarshal(first.Body.Bytes(), &granted); err != nil || first.Code != http.StatusCreated ||
		granted.Taken || granted.Answer != nil {
		t.Fatalf("got %d %s", first.Code, first.Body)
	}
	steps := []struct {
		what, method, path, body string
		status                   int
		code                     fault.Code
	}{
		{
			what: "while it runs", method: "POST", path: keysPath, body: leaseBody("k", other), status: 409,
			code: fault.RequestRunning,
		},
		{
			what: "another body", method: "POST", path: keysPath, body: strings.ReplaceAll(leaseBody("k", other), "aB", "00"),
			status: 422, code: fault.KeyReused,
		},
		{what: "renewed", method: "PUT", path: keysPath + "/" + lease, body: `{"leaseMs":1000}`, status: 204, code: ""},
		{what: "given up", method: "PUT", path: keysPath + "/" + lease, body: `{"leaseMs":0}`, status: 204, code: ""},
		{what: "taken over", method: "POST", path: keysPath, body: leaseBody("k", other), status: 201, code: ""},
		{
			what: "renewed by who lost it", method: "PUT", path: keysPath + "/" + lease, body: `{"leaseMs":1000}`, status: 409,
			code: fault.KeyLeaseLost,
		},
		{
			what: "finished by who lost it", method: "PUT", path: keysPath + "/" + lease,
			body: `{"answer":{"status":201,"body":{}}}`, status: 409, code: fault.KeyLeaseLost,
		},
		{
			what: "finished", method: "PUT", path: keysPath + "/" + other,
			body: `{"answer":{"status":201,"location":"/l","body":{"b":"<ü>","a":1.50}}}`, status: 204, code: "",
		},
	}
	for _, s := range steps {
		if got := a.call(s.method, s.path, s.body, tenant); got.Code != s.status ||
			got.Header().Get(fault.Header) != string(s.code) {
			t.Errorf("%s: got %d %s, want %d %s", s.what, got.Code, got.Body, s.status, s.code)
		}
	}
	last := a.call("POST", keysPath, leaseBody("k", uuid.NewString()), tenant)
	want := fmt.Sprintf(`{"loanId":%q,"taken":true,"answer":{"status":201,"location":"/l","body":{"b":"\u003cü\u003e",`+
		`"a":1.50}}}`, granted.LoanID)
	if got := strings.TrimSpace(last.Body.String()); last.Code != http.StatusOK || got != want {
		t.Errorf("got %d %s, want 200 %s", last.Code, got, want)
	}
}

func TestKeyLeaseRoutes_DescribeABadRequest(t *testing.T) {
	t.Parallel()
	a, tenant := keyAPI(t)
	id := uuid.NewString()
	good := leaseBody("k", id)
	tests := map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"no JSON": {method: "POST", path: keysPath, body: `{`, status: 400, says: "not valid JSON"},
		"nothing given": {
			method: "POST", path: keysPath, body: `{}`, status: 422, says: "key must have 1 to 255 printable characters",
		},
		"unprintable key": {
			method: "POST", path: keysPath, body: strings.Replace(good, `"k"`, `"a\u0007"`, 1), status: 422,
			says: "key must have",
		},
		"half a character": {
			method: "POST", path: keysPath, body: strings.Replace(good, `"k"`, `"\ud800"`, 1), status: 422,
			says: "is no character",
		},
		"long key": {
			method: "POST", path: keysPath, body: strings.Replace(good, `"k"`, `"`+strings.Repeat("k", 256)+`"`, 1), status: 422,
			says: "key must have",
		},
		"short hash": {
			method: "POST", path: keysPath, body: strings.Replace(good, "aBaB", "aB", 1), status: 422,
			says: "bodyHash must be a SHA-256",
		},
		"hash that is none": {
			method: "POST", path: keysPath, body: strings.Replace(good, "aB", "xy", 1), status: 422,
			says: "bodyHash must be a SHA-256",
		},
		"lease that is none": {
			method: "POST", path: keysPath, body: strings.Replace(good, id, "' OR 1=1", 1), status: 422,
			says: "claimId must be a UUID",
		},
		"nil lease": {
			method: "POST", path: keysPath, body: strings.Replace(good, id, uuid.Nil.String(), 1), status: 422,
			says: "claimId must be a UUID",
		},
		"lease too short": {
			method: "POST", path: keysPath, body: strings.Replace(good, "60000", "99", 1), status: 422,
			says: "leaseMs must be from 100 to 600000",
		},
		"lease too long": {
			method: "POST", path: keysPath, body: strings.Replace(good, "60000", "600001", 1), status: 422,
			says: "leaseMs must be from 100 to 600000",
		},
		"wait too long": {
			method: "POST", path: keysPath, body: strings.Replace(good, "60000", `60000,"waitMs":2001`, 1), status: 422,
			says: "waitMs must be from 0 to 2000",
		},
		"lease that wraps": {
			method: "POST", path: keysPath, body: strings.Replace(good, "60000", "18446744133710", 1), status: 422,
			says: "leaseMs must be from 100 to 600000",
		},
		"wait that wraps": {
			method: "POST", path: keysPath, body: strings.Replace(good, "60000", `60000,"waitMs":18446744073710`, 1),
			status: 422, says: "waitMs must be from 0 to 2000",
		},
		"renewal that wraps": {
			method: "PUT", path: keysPath + "/" + id, body: `{"leaseMs":18446744133710}`, status: 422,
			says: "leaseMs must be from 0",
		},
		"change of nothing": {
			method: "PUT", path: keysPath + "/" + id, body: `{}`, status: 422, says: "leaseMs or answer is required",
		},
		"change of both": {
			method: "PUT", path: keysPath + "/" + id, body: `{"leaseMs":1,"answer":{"status":201,"body":{}}}`, status: 422,
			says: "leaseMs or answer is required",
		},
		"negative lease": {
			method: "PUT", path: keysPath + "/" + id, body: `{"leaseMs":-1}`, status: 422, says: "leaseMs must be from 0",
		},
		"answer of a 500": {
			method: "PUT", path: keysPath + "/" + id, body: `{"answer":{"status":500,"body":{}}}`, status: 422,
			says: "answer.status must be from 200 to 499",
		},
		"answer of nothing": {
			method: "PUT", path: keysPath + "/" + id, body: `{"answer":{"status":201}}`, status: 422,
			says: "answer.body is required",
		},
		"id that is none": {method: "PUT", path: keysPath + "/7", body: `{"leaseMs":1}`, status: 400, says: "must be a UUID"},
		"id of no lease":  {method: "PUT", path: keysPath + "/" + id, body: `{"leaseMs":1}`, status: 409, says: "taken over"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := a.call(tt.method, tt.path, tt.body, tenant); got.Code != tt.status ||
				!strings.Contains(got.Body.String(), tt.says) {
				t.Errorf("got %d %s, want %d %s", got.Code, got.Body, tt.status, tt.says)
			}
		})
	}
	if got := a.call("POST", keysPath, leaseBody("k", uuid.NewString()), tenant); got.Code != http.StatusCreated ||
		strings.Contains(got.Body.String(), "taken") {
		t.Errorf("after all that: got %d %s, want a first lease", got.Code, got.Body)
	}
}
