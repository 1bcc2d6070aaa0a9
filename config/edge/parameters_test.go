package edge_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/config/edge"
	"checkoutlock/schemas/fault"
)

// query returns the parameters of a request with that query string.
func query(text string) *edge.Parameters {
	r := httptest.NewRequest(http.MethodGet, "/?"+text, nil)
	return edge.QueryOf(echo.New().NewContext(r, httptest.NewRecorder()))
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
