package openapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi-validator/schema_validation"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
	locks "checkoutlock/resource-locks/app"
)

func TestDocuments_AreOpenAPI(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func() (map[string]any, error){
		"circulation": circulation.Module().OpenAPI, "circulation-storage": storage.Module().OpenAPI,
		"resource-locks": locks.Module().OpenAPI,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := read()
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := libopenapi.NewDocument(raw)
			if err != nil {
				t.Fatal(err)
			}
			if ok, wrong := schema_validation.ValidateOpenAPIDocument(parsed); !ok {
				for _, w := range wrong {
					t.Errorf("%s: %s", w.Message, w.Reason)
					for _, s := range w.SchemaValidationErrors {
						t.Errorf("  %s: %s", s.FieldPath, s.Reason)
					}
				}
			}
		})
	}
}

func TestChecker_FindsWhatIsNotDescribed(t *testing.T) {
	t.Parallel()
	c, err := NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	const id = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	const checkOut = "/circulation/check-out-by-barcode"
	tests := []struct {
		name, method, path, body, media, code string
		status                                int
		without                               string // a header that the answer lacks
		want                                  string // part of the error; "" for a described answer
	}{
		{
			name: "a loan", method: "POST", path: checkOut, status: 201,
			body: `{"loanDate":"2026-03-01T10:00:00Z","userId":"` + id + `","itemId":"` + id + `","action":"checkedout"}`,
		},
		{
			name: "a loan with a bad type", method: "POST", path: checkOut, status: 201,
			body: `{"loanDate":7}`, want: "not described",
		},
		{name: "another status", method: "POST", path: checkOut, status: 202, body: `{}`, want: "the status 202"},
		{
			name: "a refusal", method: "POST", path: checkOut, status: 422, code: "INVALID",
			body: `{"errors":[{"message":"m","parameters":[]}]}`,
		},
		{
			name: "a refusal of another form", method: "POST", path: checkOut, status: 422, code: "INVALID",
			body: `{"error":"m"}`, want: "not described",
		},
		{
			name: "a loan without its place", method: "POST", path: checkOut, status: 201, without: "Location",
			body: `{"loanDate":"2026-03-01T10:00:00Z","userId":"` + id + `","itemId":"` + id + `","action":"checkedout"}`,
			want: "no header Location of 201",
		},
		{
			name: "an answer without its request's id", method: "GET", path: "/users", status: 200,
			without: "X-Okapi-Request-Id", body: `{"users":[],"totalRecords":0}`, want: "no header X-Okapi-Request-Id of 200",
		},
		{
			name: "a refusal without a code", method: "POST", path: checkOut, status: 422,
			body: `{"errors":[]}`, want: "no header X-Fault-Code of 422",
		},
		{
			name: "a code of another status", method: "POST", path: checkOut, status: 422, code: "MALFORMED",
			body: `{"errors":[]}`, want: "the code MALFORMED of 422",
		},
		{
			name: "another type", method: "POST", path: checkOut, status: 201, media: "text/html",
			body: "x", want: `the type "text/html"`,
		},
		{name: "a list", method: "GET", path: "/users", status: 200, body: `{"users":[],"totalRecords":0}`},
		{
			name: "a list under another key", method: "GET", path: "/users", status: 200,
			body: `{"user":[]}`, want: "not described",
		},
		{
			name: "an unknown property of our own", method: "GET", path: "/check-out-lock-storage/" + id, status: 200,
			body: `{"x":1}`, want: "not described",
		},
		{
			name: "an unknown path", method: "GET", path: "/x", status: 200,
			body: `{}`, want: "GET /x is not described",
		},
		{
			name: "an id with a slash", method: "GET", path: "/users/1/2", status: 400, code: "MALFORMED", media: "text/plain",
			body: "no UUID",
		},
		{name: "no answer at an unknown path", method: "GET", path: "/x", status: 404, code: "NOT_FOUND", body: `{}`},
		{
			name: "a literal before a parameter", method: "GET", status: 200,
			path: "/circulation/requests/allowed-service-points",
			body: `{"Hold":[]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{
				"Content-Type": {"application/json"}, "X-Okapi-Request-Id": {"1"}, "Location": {"/circulation/loans/" + id},
			}
			header.Del(tt.without)
			if tt.media != "" {
				header.Set("Content-Type", tt.media)
			}
			if tt.code != "" {
				header.Set("X-Fault-Code", tt.code)
			}
			r, err := http.NewRequestWithContext(t.Context(), tt.method, "http://storage"+tt.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			err = c.Check(r, tt.status, header, []byte(tt.body))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func BenchmarkChecker(b *testing.B) {
	c, err := NewChecker()
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://storage/users", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(`{"users":[{"username":"u","barcode":"b","active":true,"personal":{"lastName":"R"}}],"totalRecords":1}`)
	header := http.Header{"Content-Type": {"application/json"}, "X-Okapi-Request-Id": {"1"}}
	for b.Loop() {
		if err := c.Check(r, http.StatusOK, header, body); err != nil {
			b.Fatal(err)
		}
	}
}
