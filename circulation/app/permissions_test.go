package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"checkoutlock/schemas/okapi"
)

const overrideLimit = "circulation.override-item-limit-block.post"

// sentPermissions is an empty storage that records the permissions of calls.
type sentPermissions struct {
	mu   sync.Mutex
	seen []string
}

func (s *sentPermissions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Header.Get(okapi.PermissionsHeader))
	s.mu.Unlock()
	empty(w, r)
}

// has reports whether any call had the permission.
func (s *sentPermissions) has(t *testing.T, permission string) bool {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.seen, func(header string) bool {
		var list []string
		if header != "" {
			if err := json.Unmarshal([]byte(header), &list); err != nil {
				t.Errorf("storage was sent %q: %v", header, err)
			}
		}
		return slices.Contains(list, permission)
	})
}

func TestApp_PassesOnTrustedPermissionsOnly(t *testing.T) {
	t.Parallel()
	const password = "correct horse battery"
	tests := []struct {
		name     string
		environ  []string
		password string
		status   int
		passedOn bool
	}{
		{name: "by default a gateway is in front", status: 422, passedOn: true},
		{name: "a gateway is in front", environ: []string{"STAFF_AUTH=gateway"}, status: 422, passedOn: true},
		{
			name: "a password is asked for and not sent", environ: []string{"STAFF_AUTH=basic", "STAFF_PASSWORD=" + password},
			status: 422,
		},
		{
			name: "a wrong password", environ: []string{"STAFF_AUTH=basic", "STAFF_PASSWORD=" + password},
			password: "correct horse", status: 401,
		},
		{
			name: "the password", environ: []string{"STAFF_AUTH=basic", "STAFF_PASSWORD=" + password}, password: password,
			status: 422, passedOn: true,
		},
		{name: "all on this machine", environ: []string{"STAFF_AUTH=none"}, status: 422},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var storage sentPermissions
			url := startWith(t, &storage, tt.environ)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/circulation/check-out-by-barcode-dry-run",
				strings.NewReader(`{"itemBarcode":"1","userBarcode":"2"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(okapi.TenantHeader, "diku")
			req.Header.Set(okapi.PermissionsHeader, `["`+overrideLimit+`"]`)
			if tt.password != "" {
				req.SetBasicAuth("ann", tt.password)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.status || storage.has(t, overrideLimit) != tt.passedOn {
				t.Errorf("got %d, storage was sent the permission: %t, want %d and %t", resp.StatusCode, !tt.passedOn, tt.status,
					tt.passedOn)
			}
		})
	}
}
