package staff_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/schemas"
)

// answer sends a request that accepts gzip, and returns the answer without its body.
func (v *visitor) answer(t *testing.T, method, path string) (status int, header http.Header, size int) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Host = v.host
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	v.handler.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.Len()
}

func TestPages_AnswerHeadAsGet(t *testing.T) {
	t.Parallel()
	v := visit(t, history())
	for _, path := range []string{
		"/staff/", "/staff/diku", "/staff/diku/", "/staff/diku/timing", "/staff/diku/switch?to=on", "/staff/diku/check-outs",
		"/staff/diku/nothing", "/staff/-/page.js",
	} {
		getStatus, getHeader, _ := v.answer(t, http.MethodGet, path)
		status, header, _ := v.answer(t, http.MethodHead, path)
		if status != getStatus || header.Get("Content-Type") != getHeader.Get("Content-Type") {
			t.Errorf("%s: HEAD got %d %s, GET %d %s", path, status, header.Get("Content-Type"), getStatus,
				getHeader.Get("Content-Type"))
		}
	}
}

func TestPages_AnswerHeadOfAStreamAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, history())
		begin := time.Now()
		status, header, size := v.answer(t, http.MethodHead, "/staff/diku/locks/live")
		if status != http.StatusOK || header.Get("Content-Type") != "text/event-stream" || size != 0 ||
			time.Since(begin) != 0 {
			t.Errorf("got %d %s of %d bytes after %s, want the headers at once", status, header.Get("Content-Type"), size,
				time.Since(begin))
		}
	})
}

func TestPages_AreNotCompressedButTheirFilesAre(t *testing.T) {
	t.Parallel()
	v := visit(t, history(schemas.PastCheckOut{Outcome: "lent"}))
	if status, header, size := v.answer(t, http.MethodGet, "/staff/diku/check-outs?patron=569"); status != http.StatusOK ||
		size < 5000 || header.Get("Content-Encoding") != "" {
		t.Errorf("a page: got %d, %d bytes, as %q", status, size, header.Get("Content-Encoding"))
	}
	if status, header, _ := v.answer(t, http.MethodGet, "/staff/-/page.js"); status != http.StatusOK ||
		header.Get("Content-Encoding") != "gzip" {
		t.Errorf("a file: got %d as %q", status, header.Get("Content-Encoding"))
	}
}
