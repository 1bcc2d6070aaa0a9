package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// sendHeaders posts with headers that may repeat, and returns the call that the
// handler saw; nil when it was not reached.
func sendHeaders(t *testing.T, header http.Header) (*httptest.ResponseRecorder, *okapi.Call) {
	t.Helper()
	var seen *okapi.Call
	h := service(func(c echo.Context) error {
		info := okapi.FromContext(c.Request().Context())
		seen = &info
		return c.NoContent(http.StatusNoContent)
	}, func(o *web.Options) { o.BelievePermissions = true })
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/thing/1", strings.NewReader("{}"))
	r.Header = header
	if len(r.Header.Values("X-Okapi-Tenant")) == 0 {
		r.Header.Set("X-Okapi-Tenant", "diku")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, seen
}

func TestNew_RefusesAHeaderWithTwoValues(t *testing.T) {
	t.Parallel()
	values := map[string][2]string{
		"X-Okapi-Tenant":      {"diku", "other"},
		"X-Okapi-User-Id":     {"9ad09b01-7429-455f-9f64-e3897027db61", "9ad09b01-7429-455f-9f64-e3897027db62"},
		"X-Okapi-Request-Id":  {"1/circulation", "2/circulation"},
		"X-Okapi-Token":       {"a", "b"},
		"X-Okapi-Permissions": {`["a"]`, `["a","b"]`},
	}
	for name, v := range values {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, sent := range [][]string{
				{v[0], v[1]}, {v[1], v[0]}, {v[0], v[0], v[1]}, {v[0], v[1], v[0]}, {v[0], ""}, {"", v[0]},
			} {
				w, seen := sendHeaders(t, http.Header{name: sent})
				if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "The header "+name+" was sent") ||
					seen != nil {
					t.Errorf("%q: got %d %s, want 400 that names the header", sent, w.Code, w.Body)
				}
			}
			for _, sent := range [][]string{{v[0]}, {v[0], v[0]}} {
				if w, seen := sendHeaders(t, http.Header{name: sent}); w.Code != http.StatusNoContent || seen == nil {
					t.Errorf("%q: got %d %s, want 204", sent, w.Code, w.Body)
				}
			}
		})
	}
}

func TestNew_AcceptsPermissionsAsAListOfStrings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, sent string
		want       []string
		refused    bool
	}{
		{name: "one", sent: `["x.y"]`, want: []string{"x.y"}},
		{name: "two with blanks", sent: ` [ "x.y" , "z" ] `, want: []string{"x.y", "z"}},
		{name: "none", sent: `[]`},
		{name: "an empty header", sent: ""},
		{name: "a number in the list", sent: `["x.y",1]`, refused: true},
		{name: "a null in the list", sent: `["x.y",null]`, refused: true},
		{name: "a list in the list", sent: `["x.y",["z"]]`, refused: true},
		{name: "an object in the list", sent: `[{"permissionName":"x.y"}]`, refused: true},
		{name: "a string", sent: `"x.y"`, refused: true},
		{name: "an object", sent: `{"x.y":true}`, refused: true},
		{name: "null", sent: `null`, refused: true},
		{name: "no JSON", sent: `x.y,z`, refused: true},
		{name: "two lists that a proxy joined", sent: `["x.y"], ["z"]`, refused: true},
		{name: "half a list", sent: `["x.y"`, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, seen := sendHeaders(t, http.Header{"X-Okapi-Permissions": {tt.sent}})
			if tt.refused {
				if w.Code != http.StatusBadRequest ||
					!strings.Contains(w.Body.String(), "X-Okapi-Permissions must be a JSON list of strings") || seen != nil {
					t.Errorf("got %d %s, want 400 that says what is expected", w.Code, w.Body)
				}
				return
			}
			if w.Code != http.StatusNoContent || !slices.Equal(seen.Permissions, tt.want) {
				t.Errorf("got %d %s with %q, want %q", w.Code, w.Body, seen.Permissions, tt.want)
			}
		})
	}
}

func TestNew_NamesTheMachineByTheFirstProxysCaller(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, forwarded, want string }{
		{name: "no proxy", want: "192.0.2.1"}, // of httptest
		{name: "one proxy", forwarded: "10.1.2.3", want: "10.1.2.3"},
		{name: "two proxies", forwarded: "2001:db8::7, 10.1.2.3", want: "2001:db8::7"},
		{name: "an IPv4 address as IPv6", forwarded: "::ffff:10.1.2.3", want: "10.1.2.3"},
		{name: "no address", forwarded: "unknown", want: "192.0.2.1"},
		{name: "a text of any length", forwarded: "fe80::1%" + strings.Repeat("x", 1000), want: "192.0.2.1"},
	} {
		_, seen := sendHeaders(t, http.Header{"X-Forwarded-For": {tt.forwarded}})
		if seen == nil || seen.Machine != tt.want {
			t.Errorf("%s: got %+v, want the machine %s", tt.name, seen, tt.want)
		}
	}
}

// Headers are refused as the caller's mistake, or the handler sees checked values.
func FuzzNew_ReadsHeaders(f *testing.F) {
	requestID := regexp.MustCompile(`^[A-Za-z0-9/;:._-]{1,200}$`)
	f.Add("z_9", "", "azAZ09/;:._-", "")
	f.Add("z_9", "", strings.Repeat("x", 201), "")
	for _, odd := range []string{"a,b", "é", "@", "[", "`", "{", "\xff"} {
		f.Add("z_9", "", odd, "")
	}
	f.Add("diku", "9ad09b01-7429-455f-9f64-e3897027db61", "1/circulation;2/loans", `["x.y"]`)
	f.Add("DIKU", "9AD09B01-7429-455F-9F64-E3897027DB61", "a\nb", `["x",null]`)
	f.Add("a'b", "{9ad09b01-7429-455f-9f64-e3897027db61}", "\x00", `[`)
	f.Add("", "urn:uuid:9ad09b01-7429-455f-9f64-e3897027db61", "", `["\ud800"]`)
	f.Fuzz(func(t *testing.T, tenant, user, request, permissions string) {
		w, seen := sendHeaders(t, http.Header{
			okapi.TenantHeader: {tenant}, okapi.UserIDHeader: {user}, okapi.RequestIDHeader: {request},
			okapi.PermissionsHeader: {permissions},
		})
		if seen == nil {
			if w.Code != http.StatusBadRequest || w.Body.Len() == 0 {
				t.Fatalf("got %d %s, want 400 that says why", w.Code, w.Body)
			}
			return
		}
		if _, err := okapi.ParseTenant(tenant); err != nil || seen.Tenant.String() != tenant {
			t.Errorf("the tenant %q became %q", tenant, seen.Tenant)
		}
		if id, err := uuid.Parse(seen.UserID); seen.UserID != "" && (err != nil || seen.UserID != id.String()) {
			t.Errorf("the user %q became %q", user, seen.UserID)
		}
		if !requestID.MatchString(seen.RequestID) || (seen.RequestID == request) != requestID.MatchString(request) {
			t.Errorf("the request id %q became %q", request, seen.RequestID)
		}
		if len(seen.Permissions) > 0 && !json.Valid([]byte(permissions)) {
			t.Errorf("%q grants %q", permissions, seen.Permissions)
		}
	})
}
