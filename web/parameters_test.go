package web_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/web"
)

// askQuery sends a query string to a route that declares query. It returns the messages of
// what is refused; read gets the values otherwise.
func askQuery(t *testing.T, query web.Query, text string, read func(*web.Values)) []string {
	t.Helper()
	h := web.New(web.Options{
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: 100,
	}, []web.Route{{
		Method: http.MethodGet, Path: "/", NoTenant: true, Query: query,
		Endpoint: web.Handle(func(c echo.Context) error {
			if read != nil {
				read(web.QueryOf(c))
			}
			return c.NoContent(http.StatusNoContent)
		}),
	}})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?"+text, nil))
	switch w.Code {
	case http.StatusNoContent:
		return nil
	case http.StatusUnprocessableEntity:
	default:
		return []string{fmt.Sprint(w.Code), w.Body.String()}
	}
	var got web.Errors
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	messages := make([]string, len(got.Errors))
	for i, d := range got.Errors {
		messages[i] = d.Message
	}
	return messages
}

var all = []web.Parameter{
	{Name: "name", Most: 10},
	{Name: "minutes", Type: web.Integer, Default: 60, Least: 1, Most: 60},
	{Name: "on", Type: web.Boolean},
	{Name: "from", Type: web.Time},
	{Name: "id", Type: web.UUID},
}

func TestQuery_NamesEverythingWrongOncePerParameter(t *testing.T) {
	t.Parallel()
	query := web.Query{Parameters: all, Check: func(q *web.Values) {
		q.Wrong("name", "is taken")
		q.Wrong("until", "is missing")
	}}
	want := []string{
		"name must have 1 to 10 characters", "minutes must be an integer from 1 to 60", "on must be true or false",
		"from must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z", "id must be a UUID",
		"until is missing",
	}
	if got := askQuery(t, query, "name=&on=yes&minutes=1e3&from=2026-08-22&id=1", nil); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	query := web.Strict(all...)
	got := askQuery(t, query, "", func(q *web.Values) {
		if q.Text("name") != "" || q.Integer("minutes") != 60 || q.Boolean("on") != nil || !q.Time("from").IsZero() ||
			q.Count("id") != 0 {
			t.Error("absent parameters have values")
		}
	})
	if got != nil {
		t.Errorf("absent parameters are refused: %q", got)
	}
	const id = "77477611-ab44-4a36-9d41-2f6ffb9e6e41"
	got = askQuery(t, query, "name=%C3%A9&minutes=3&on=false&from=2026-08-22T10:11:12%2B02:00&id="+id,
		func(q *web.Values) {
			if q.Text("name") != "é" || q.Integer("minutes") != 3 || *q.Boolean("on") || q.UUID("id").String() != id ||
				!q.Time("from").Equal(time.Date(2026, 8, 22, 8, 11, 12, 0, time.UTC)) {
				t.Error("parameters have other values")
			}
		})
	if got != nil {
		t.Errorf("right parameters are refused: %q", got)
	}
	for name, text := range map[string]string{"no UTF-8": "name=%ff", "NUL": "name=%00", "too long": "name=12345678901"} {
		if askQuery(t, query, text, nil) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestQuery_RefusesUnknownAndRepeatedParametersIfStrict(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, query string
		want        []string
	}{
		{name: "all known", query: "name=a&minutes=5&on=true&from=2026-08-22T10:11:12Z", want: nil},
		{name: "one unknown", query: "minuts=5", want: []string{"minuts is unknown; allowed are name, minutes, on, from"}},
		{name: "another case", query: "Name=a", want: []string{"Name is unknown; allowed are name, minutes, on, from"}},
		{name: "no name", query: "=5", want: []string{" is unknown; allowed are name, minutes, on, from"}},
		{name: "two unknown, one wrong", query: "z=1&minutes=x&b=2", want: []string{
			"minutes must be an integer from 1 to 60",
			"b is unknown; allowed are name, minutes, on, from", "z is unknown; allowed are name, minutes, on, from",
		}},
		{
			name: "repeated with the same value", query: "name=a&name=a", want: []string{"name must be given once, not 2 times"},
		},
		{
			name: "repeated with another value", query: "minutes=5&minutes=x&minutes=7",
			want: []string{"minutes must be given once, not 3 times"},
		},
		{name: "repeated and unknown", query: "x=1&x=2", want: []string{"x is unknown; allowed are name, minutes, on, from"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := askQuery(t, web.Strict(all[:4]...), tt.query, nil); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestQuery_NamesOnlySomeOfManyUnknownParameters(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("p%d=%s", i, strings.Repeat("x", 1000)))
	}
	if got := askQuery(t, web.Strict(), strings.Join(many, "&"), nil); len(got) != 10 ||
		got[0] != "p0 is unknown; no parameters are allowed" {
		t.Errorf("got %q, want the first ten", got)
	}
}

func TestQuery_IgnoresUnknownAndRepeatedParametersUnlessStrict(t *testing.T) {
	t.Parallel()
	query := web.Query{Parameters: []web.Parameter{web.Limit(10, 0, 100), web.Offset(100)}}
	askQuery(t, query, "lang=en&limit=5&limit=6", func(q *web.Values) {
		if got := q.Integer("limit"); got != 5 {
			t.Errorf("limit is %d, want the first, 5", got)
		}
	})
	if got := askQuery(t, query, "lang=en&limit=5&limit=6&offset=x", nil); !slices.Equal(got, []string{
		"offset must be an integer from 0 to 100",
	}) {
		t.Errorf("got %q, want the wrong offset alone", got)
	}
}

func TestFolioPage(t *testing.T) {
	t.Parallel()
	query := web.FolioPage(web.Parameter{Name: "totalRecords", Allowed: []string{"exact", "none"}})
	tests := map[string][]string{
		"query=&totalRecords=&lang=en": nil,
		"limit=ten&offset=-1":          {"400", `Parameter offset is "-1", allowed are integers from 0 to 2147483647`},
		"limit=":                       {"400", `Parameter limit is "", allowed are integers from 0 to 2147483647`},
		"totalRecords=all":             {"400", `Parameter totalRecords is "all", allowed are exact, none`},
	}
	for text, want := range tests {
		if got := askQuery(t, query, text, nil); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// A query string is refused, or its values keep the rules of their parameters.
func FuzzQuery(f *testing.F) {
	for _, text := range []string{
		"name=a&minutes=60&on=true&from=2026-08-22T10:11:12Z&id=9ad09b01-7429-455f-9f64-e3897027db61",
		"minutes=061", "name=%00",
		"minutes=+5", "from=2026-08-22", "name=%zz", "a=1;b=2", "on=TRUE", "name=a&name=b", "%F0%9F%98%80",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			t.Skip("net/http refuses it")
		}
		messages := askQuery(t, web.Strict(all...), text, func(v *web.Values) {
			if n := v.Integer("minutes"); n < 1 || n > 60 {
				t.Errorf("%q: minutes is %d", text, n)
			}
			if name := v.Text("name"); len([]rune(name)) > 10 || strings.ContainsRune(name, 0) {
				t.Errorf("%q: name is %q", text, name)
			}
		})
		if len(messages) > 0 && messages[0] >= "500" && len(messages[0]) == len("500") {
			t.Errorf("%q: %q", text, messages)
		}
	})
}
