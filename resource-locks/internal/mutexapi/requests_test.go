package mutexapi_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	long := strings.Repeat("%C3%A4", 255)
	for _, tt := range []struct {
		name, method, path, user string
		status                   int
		part                     string
	}{
		{"no user", "POST", "/api/lock/u/", "", 401, "The header X-User-Id with the user's id is missing"},
		{"no user", "DELETE", "/api/lock/u/", "", 401, "X-User-Id"},
		{"no user", "GET", "/api/lock/u/", "", 401, "X-User-Id"},
		{"a long user", "POST", "/api/lock/u/", strings.Repeat("u", 256), 400, "allowed are 1 to 255 characters"},
		{"PUT", "PUT", "/api/lock/u/", "1", 405, "allowed are"},
		{"PATCH", "PATCH", "/api/lock/u", "1", 405, "allowed are"},
		{"no uid", "POST", "/api/lock/", "1", 404, ""},
		{"no uid", "DELETE", "/api/lock//", "1", 404, ""},
		{"no uid", "POST", "/api/lock", "1", 404, ""},
		{"two segments", "POST", "/api/lock/a/b/", "1", 404, ""},
		{"another path", "GET", "/api/locks/u/", "1", 404, "There is no endpoint with the path /api/locks/u/"},
		{"NUL", "POST", "/api/lock/a%00b/", "1", 400, "without NUL"},
		{"no UTF-8", "POST", "/api/lock/%FF/", "1", 400, "UTF-8"},
		{"256 characters", "POST", "/api/lock/" + long + "x/", "1", 400, "allowed are 1 to 255 characters"},
		{"255 characters", "POST", "/api/lock/" + long + "/", "1", 200, ""},
		{"255 characters", "DELETE", "/api/lock/" + long + "/", "1", 204, ""},
	} {
		t.Run(tt.name+" "+tt.method, func(t *testing.T) { s.want(t, tt.method, tt.path, tt.user, tt.status, tt.part) })
	}
	if counts, err := s.store.Count(t.Context()); err != nil || len(counts) != 0 {
		t.Errorf("got %v %v, want nothing stored", counts, err)
	}
}

func TestUID_IsComparedDecoded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, tt := range []struct{ path, uid string }{
		{"/api/lock/a%2Fb/", "a/b"},
		{"/api/lock/a%2fb", "a/b"},
		{"/api/lock/%61%2Fb", "a/b"},
		{"/api/lock/a%252Fb/", "a%2Fb"},
		{"/api/lock/a%20b/", "a b"},
		{"/api/lock/A/", "A"},
		{"/api/lock/a+b", "a+b"},
		{"/api/lock/..%2F/", "../"},
	} {
		s.want(t, "POST", tt.path, "1", 200, `"uid":"`+tt.uid+`"`)
	}
	s.want(t, "POST", "/api/lock/a%2Fb", "2", 423, "")
	s.want(t, "POST", "/api/lock/a/", "2", 200, "")
}

// Go's client sends no broken escapes.
func TestBrokenEscapes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /api/lock/%zz/ HTTP/1.1\r\nHost: x\r\nX-User-Id: 1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 400"))
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 400" {
		t.Errorf("got %s %v", answer, err)
	}
}

func TestUserHeader_WithTwoValues(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/api/lock/u/", strings.NewReader("no JSON"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header["X-User-Id"] = []string{"1", "2"}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d", resp.StatusCode)
	}
}

func TestBodies_AreNotRead(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for method, want := range map[string]int{http.MethodPost: http.StatusOK, http.MethodDelete: http.StatusNoContent} {
		for _, contentType := range []string{"", "application/json", "text/plain", "no type"} {
			r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+"/api/lock/u/", strings.NewReader(`{"user_id": 2,`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-User-Id", "1")
			r.Header.Set("Content-Type", contentType)
			resp, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s with %q: got %d", method, contentType, resp.StatusCode)
			}
		}
	}
}
