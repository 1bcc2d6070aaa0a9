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
	s := startHarness(t)
	long := strings.Repeat("%C3%A4", 255)
	for _, tt := range []struct {
		name, method, path, user string
		status                   int
		part                     string
	}{
		{
			name: "no user", method: "POST", path: "/api/lock/u/", user: "", status: 401,
			part: "The header X-User-Id with the user's id is missing",
		},
		{name: "no user", method: "DELETE", path: "/api/lock/u/", user: "", status: 401, part: "X-User-Id"},
		{name: "no user", method: "GET", path: "/api/lock/u/", user: "", status: 401, part: "X-User-Id"},
		{
			name: "a long user", method: "POST", path: "/api/lock/u/", user: strings.Repeat("u", 256), status: 400,
			part: "allowed are 1 to 255 characters",
		},
		{name: "PUT", method: "PUT", path: "/api/lock/u/", user: "1", status: 405, part: "allowed are"},
		{name: "PATCH", method: "PATCH", path: "/api/lock/u", user: "1", status: 405, part: "allowed are"},
		{name: "no uid", method: "POST", path: "/api/lock/", user: "1", status: 404, part: ""},
		{name: "no uid", method: "DELETE", path: "/api/lock//", user: "1", status: 404, part: ""},
		{name: "no uid", method: "POST", path: "/api/lock", user: "1", status: 404, part: ""},
		{name: "two segments", method: "POST", path: "/api/lock/a/b/", user: "1", status: 404, part: ""},
		{
			name: "another path", method: "GET", path: "/api/locks/u/", user: "1", status: 404,
			part: "There is no endpoint with the path /api/locks/u/",
		},
		{name: "NUL", method: "POST", path: "/api/lock/a%00b/", user: "1", status: 400, part: "without NUL"},
		{name: "no UTF-8", method: "POST", path: "/api/lock/%FF/", user: "1", status: 400, part: "UTF-8"},
		{
			name: "256 characters", method: "POST", path: "/api/lock/" + long + "x/", user: "1", status: 400,
			part: "allowed are 1 to 255 characters",
		},
		{name: "255 characters", method: "POST", path: "/api/lock/" + long + "/", user: "1", status: 200, part: ""},
		{name: "255 characters", method: "DELETE", path: "/api/lock/" + long + "/", user: "1", status: 204, part: ""},
	} {
		t.Run(tt.name+" "+tt.method, func(t *testing.T) { s.want(t, tt.method, tt.path, tt.user, tt.status, tt.part) })
	}
	if counts, err := s.store.Count(t.Context()); err != nil || len(counts) != 0 {
		t.Errorf("got %v %v, want nothing stored", counts, err)
	}
}

func TestUID_IsComparedDecoded(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
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
	s := startHarness(t)
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

func TestUserHeader(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	for status, sent := range map[int][]string{
		http.StatusBadRequest: {"1", "2"}, http.StatusOK: {"1", "1"}, http.StatusUnauthorized: {""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/api/lock/u/",
			strings.NewReader("no JSON"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header["X-User-Id"] = sent
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%q: got %d, want %d", sent, resp.StatusCode, status)
		}
	}
}

func TestBodies_AreNotRead(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	for method, want := range map[string]int{http.MethodPost: http.StatusOK, http.MethodDelete: http.StatusNoContent} {
		for _, contentType := range []string{"", "application/json", "text/plain", "no type"} {
			r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+"/api/lock/u/",
				strings.NewReader(`{"user_id": 2,`))
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
