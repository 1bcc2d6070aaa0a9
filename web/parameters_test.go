package web_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// query returns the parameters of a request with that query string.
func query(text string) *web.Parameters {
	r := httptest.NewRequest(http.MethodGet, "/?"+text, nil)
	return web.QueryOf(echo.New().NewContext(r, httptest.NewRecorder()))
}

func TestEverythingWrongInAQueryIsToldAtOnceAndOncePerParameter(t *testing.T) {
	t.Parallel()
	q := query("name=&flag=yes&number=1e3&when=2026-08-22")
	q.Text("name", 10)
	q.Wrong("name", "is nobody's")
	q.Boolean("flag")
	q.Integer("number", 5, 1, 10)
	q.Time("when")
	var f *fault.Error
	if err := q.Err(); !errors.As(err, &f) || f.Code != fault.Invalid {
		t.Fatalf("got %v, want INVALID", err)
	}
	want := []string{
		"name must have 1 to 10 characters", "flag must be true or false", "number must be an integer from 1 to 10",
		"when must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z",
	}
	for i, d := range f.Details {
		if i >= len(want) || d.Message != want[i] {
			t.Errorf("detail %d is %q, want %q", i, d.Message, want)
		}
	}
	if len(f.Details) != len(want) || *f.Details[2].Parameters[0].Value != "1e3" {
		t.Errorf("got %+v", f.Details)
	}
}

func TestParametersThatAreAbsentOrRight(t *testing.T) {
	t.Parallel()
	q := query("")
	if q.Text("a", 1) != "" || q.Integer("a", 7, 1, 3) != 7 || q.Boolean("a") != nil || !q.Time("a").IsZero() || q.Err() != nil {
		t.Errorf("absent parameters: %v", q.Err())
	}
	q = query("a=%C3%A9&n=3&b=false&t=2026-08-22T10:11:12%2B02:00")
	if q.Text("a", 1) != "é" || q.Integer("n", 7, 1, 3) != 3 || *q.Boolean("b") ||
		!q.Time("t").Equal(time.Date(2026, 8, 22, 8, 11, 12, 0, time.UTC)) || q.Err() != nil {
		t.Errorf("right parameters: %v", q.Err())
	}
	for name, text := range map[string]string{"no UTF-8": "a=%ff", "NUL": "a=%00", "too long": "a=xy"} {
		if q := query(text); q.Text("a", 1) == "" || q.Err() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// refused are the messages of what is wrong.
func refused(t *testing.T, err error) []string {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil
	}
	if f.Code != fault.Invalid {
		t.Errorf("got %v, want %s", err, fault.Invalid)
	}
	messages := make([]string, len(f.Details))
	for i, d := range f.Details {
		messages[i] = d.Message
	}
	return messages
}

func TestParameters_RefuseWhatIsUnknownOrRepeated(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, query string
		want        []string
	}{
		{"all known", "name=a&minutes=5&on=true&from=2026-08-22T10:11:12Z", nil},
		{"one unknown", "minuts=5", []string{"minuts is unknown; allowed are name, minutes, on, from"}},
		{"another case", "Name=a", []string{"Name is unknown; allowed are name, minutes, on, from"}},
		{"no name", "=5", []string{" is unknown; allowed are name, minutes, on, from"}},
		{"two unknown, one wrong", "z=1&minutes=x&b=2", []string{
			"minutes must be an integer from 1 to 60",
			"b is unknown; allowed are name, minutes, on, from", "z is unknown; allowed are name, minutes, on, from",
		}},
		{"repeated with the same value", "name=a&name=a", []string{"name must be given once, not 2 times"}},
		{"repeated with another value", "minutes=5&minutes=x&minutes=7", []string{"minutes must be given once, not 3 times"}},
		{"repeated and unknown", "x=1&x=2", []string{"x is unknown; allowed are name, minutes, on, from"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := query(tt.query)
			q.Text("name", 10)
			q.Integer("minutes", 60, 1, 60)
			q.Boolean("on")
			q.Time("from")
			for range 2 { // a second look finds the same
				if got := refused(t, q.Err()); !slices.Equal(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
		})
	}
}

func TestParameters_NameOnlySomeOfManyThatAreUnknown(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("p%d=%s", i, strings.Repeat("x", 1000)))
	}
	if got := refused(t, query(strings.Join(many, "&")).Err()); len(got) != 10 || got[0] != "p0 is unknown; no parameters are allowed" {
		t.Errorf("got %q, want the first ten", got)
	}
}

func TestParameters_OfFolioTolerateWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/?lang=en&limit=5&limit=6&offset=x", nil)
	q := web.FolioQueryOf(echo.New().NewContext(r, httptest.NewRecorder()))
	if got := q.Integer("limit", 10, 0, 100); got != 5 {
		t.Errorf("limit is %d, want the first, 5", got)
	}
	q.Integer("offset", 0, 0, 100)
	if got := refused(t, q.Err()); !slices.Equal(got, []string{"offset must be an integer from 0 to 100"}) {
		t.Errorf("got %q, want the wrong offset alone", got)
	}
}

func TestNoParameters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{"": nil, "force=true": {"force is unknown; no parameters are allowed"}} {
		r := httptest.NewRequest(http.MethodGet, "/?"+text, nil)
		called := false
		h := web.NoParameters(func(echo.Context) error { called = true; return nil })
		err := h(echo.New().NewContext(r, httptest.NewRecorder()))
		if got := refused(t, err); !slices.Equal(got, want) || called != (want == nil) {
			t.Errorf("%q: got %q and called %t, want %q", text, got, called, want)
		}
	}
}
