package staff_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestAssets_AreCachedIfTheirVersionIsCurrent(t *testing.T) {
	t.Parallel()
	v := visit(t, &library{view: own(false, 3000)})
	first := v.get(t, "/staff/diku/")
	for file, kind := range map[string]string{
		"page.css": "text/css", "page.js": "text/javascript", "page.svg": "image/svg+xml",
	} {
		start := strings.Index(first.html, "/staff/-/"+file+"?v=")
		if start < 0 {
			t.Fatalf("%s is not on the page", file)
		}
		path := first.html[start : start+strings.IndexByte(first.html[start:], '"')]
		p := v.get(t, path)
		if p.status != http.StatusOK || !strings.HasPrefix(p.header.Get("Content-Type"), kind) ||
			!strings.Contains(p.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d, %v", path, p.status, p.header)
		}
		for _, other := range []string{path + "0", path[:strings.IndexByte(path, '?')], path[:len(path)-1]} {
			if p := v.get(t, other); p.status != http.StatusOK || p.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s, which this version does not have: got %d, %v", other, p.status, p.header)
			}
		}
	}
}
