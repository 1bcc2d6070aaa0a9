package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// page is as much of what matches as is asked for, one record unless b.matching says
// otherwise.
func (b *backend) page(doc string, limit int) []json.RawMessage {
	return slices.Repeat([]json.RawMessage{json.RawMessage(doc)}, min(limit, max(1, b.matching)))
}

func TestLists_AreBounded(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/circulation/loans", "/circulation/requests"} {
		tests := []struct {
			name, query string
			matching    int
			status      int
		}{
			{name: "any limit while few match", query: "?limit=2147483647", matching: 3, status: http.StatusOK},
			{name: "as many as are allowed", query: "?limit=2147483647", matching: 10_000, status: http.StatusOK},
			{name: "one more", query: "?limit=2147483647", matching: 10_001, status: http.StatusUnprocessableEntity},
			{
				name: "a limit that is just too high", query: "?limit=10001", matching: 20_000,
				status: http.StatusUnprocessableEntity,
			},
			{name: "a page of many", query: "?limit=10000&offset=5", matching: 20_000, status: http.StatusOK},
		}
		for _, tt := range tests {
			t.Run(path+" with "+tt.name, func(t *testing.T) {
				t.Parallel()
				b := &backend{matching: tt.matching}
				status, _, body := b.send(t, http.MethodGet, path+tt.query, "")
				if status != tt.status || b.limit > 10_001 {
					t.Errorf("got %d %.200s after asking storage for %d, want %d", status, body, b.limit, tt.status)
				}
				if status != http.StatusOK && !strings.Contains(body, "limit must be at most 10000 here") {
					t.Errorf("got %.200s, want the bound", body)
				}
			})
		}
	}
}
