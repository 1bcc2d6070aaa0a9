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
	if err := json.Unmarshal(first.Body.Bytes(), &granted); err != nil || first.Code != http.StatusCreated || granted.Taken || granted.Answer != nil {
		t.Fatalf("got %d %s", first.Code, first.Body)
	}
	steps := []struct {
		what, method, path, body string
		status                   int
		code                     fault.Code
	}{
		{"while it runs", "POST", keysPath, leaseBody("k", other), 409, fault.RequestRunning},
		{"another body", "POST", keysPath, strings.ReplaceAll(leaseBody("k", other), "aB", "00"), 422, fault.KeyReused},
		{"renewed", "PUT", keysPath + "/" + lease, `{"leaseMs":1000}`, 204, ""},
		{"given up", "PUT", keysPath + "/" + lease, `{"leaseMs":0}`, 204, ""},
		{"taken over", "POST", keysPath, leaseBody("k", other), 201, ""},
		{"renewed by who lost it", "PUT", keysPath + "/" + lease, `{"leaseMs":1000}`, 409, fault.KeyLeaseLost},
		{"finished by who lost it", "PUT", keysPath + "/" + lease, `{"answer":{"status":201,"body":{}}}`, 409, fault.KeyLeaseLost},
		{"finished", "PUT", keysPath + "/" + other, `{"answer":{"status":201,"location":"/l","body":{"b":"<ü>","a":1.50}}}`, 204, ""},
	}
	for _, s := range steps {
		if got := a.call(s.method, s.path, s.body, tenant); got.Code != s.status || got.Header().Get(fault.Header) != string(s.code) {
			t.Errorf("%s: got %d %s, want %d %s", s.what, got.Code, got.Body, s.status, s.code)
		}
	}
	last := a.call("POST", keysPath, leaseBody("k", uuid.NewString()), tenant)
	want := fmt.Sprintf(`{"loanId":%q,"taken":true,"answer":{"status":201,"location":"/l","body":{"b":"\u003cü\u003e","a":1.50}}}`, granted.LoanID)
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
		"no JSON":            {"POST", keysPath, `{`, 400, "not valid JSON"},
		"nothing given":      {"POST", keysPath, `{}`, 422, "key must have 1 to 255 printable characters"},
		"unprintable key":    {"POST", keysPath, strings.Replace(good, `"k"`, `"a\u0007"`, 1), 422, "key must have"},
		"half a character":   {"POST", keysPath, strings.Replace(good, `"k"`, `"\ud800"`, 1), 422, "is no character"},
		"long key":           {"POST", keysPath, strings.Replace(good, `"k"`, `"`+strings.Repeat("k", 256)+`"`, 1), 422, "key must have"},
		"short hash":         {"POST", keysPath, strings.Replace(good, "aBaB", "aB", 1), 422, "bodyHash must be a SHA-256"},
		"hash that is none":  {"POST", keysPath, strings.Replace(good, "aB", "xy", 1), 422, "bodyHash must be a SHA-256"},
		"lease that is none": {"POST", keysPath, strings.Replace(good, id, "' OR 1=1", 1), 422, "claimId must be a UUID"},
		"nil lease":          {"POST", keysPath, strings.Replace(good, id, uuid.Nil.String(), 1), 422, "claimId must be a UUID"},
		"lease too short":    {"POST", keysPath, strings.Replace(good, "60000", "99", 1), 422, "leaseMs must be from 100 to 600000"},
		"lease too long":     {"POST", keysPath, strings.Replace(good, "60000", "600001", 1), 422, "leaseMs must be from 100 to 600000"},
		"wait too long":      {"POST", keysPath, strings.Replace(good, "60000", `60000,"waitMs":2001`, 1), 422, "waitMs must be from 0 to 2000"},
		"lease that wraps":   {"POST", keysPath, strings.Replace(good, "60000", "18446744133710", 1), 422, "leaseMs must be from 100 to 600000"},
		"wait that wraps":    {"POST", keysPath, strings.Replace(good, "60000", `60000,"waitMs":18446744073710`, 1), 422, "waitMs must be from 0 to 2000"},
		"renewal that wraps": {"PUT", keysPath + "/" + id, `{"leaseMs":18446744133710}`, 422, "leaseMs must be from 0"},
		"change of nothing":  {"PUT", keysPath + "/" + id, `{}`, 422, "leaseMs or answer is required"},
		"change of both":     {"PUT", keysPath + "/" + id, `{"leaseMs":1,"answer":{"status":201,"body":{}}}`, 422, "leaseMs or answer is required"},
		"negative lease":     {"PUT", keysPath + "/" + id, `{"leaseMs":-1}`, 422, "leaseMs must be from 0"},
		"answer of a 500":    {"PUT", keysPath + "/" + id, `{"answer":{"status":500,"body":{}}}`, 422, "answer.status must be from 200 to 499"},
		"answer of nothing":  {"PUT", keysPath + "/" + id, `{"answer":{"status":201}}`, 422, "answer.body is required"},
		"id that is none":    {"PUT", keysPath + "/7", `{"leaseMs":1}`, 400, "must be a UUID"},
		"id of no lease":     {"PUT", keysPath + "/" + id, `{"leaseMs":1}`, 409, "taken over"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := a.call(tt.method, tt.path, tt.body, tenant); got.Code != tt.status || !strings.Contains(got.Body.String(), tt.says) {
				t.Errorf("got %d %s, want %d %s", got.Code, got.Body, tt.status, tt.says)
			}
		})
	}
	if got := a.call("POST", keysPath, leaseBody("k", uuid.NewString()), tenant); got.Code != http.StatusCreated || strings.Contains(got.Body.String(), "taken") {
		t.Errorf("after all that: got %d %s, want a first lease", got.Code, got.Body)
	}
}
