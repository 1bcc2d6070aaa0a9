package page_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// visit is a request for a page with a header.
func visit(t *testing.T, path string, header http.Header) (echo.Context, *httptest.ResponseRecorder) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header = header
	w := httptest.NewRecorder()
	return echo.New().NewContext(r, w), w
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path, cookie, accept, want string
	}{
		"none":                 {path: "/", want: "en"},
		"the browser's":        {path: "/", accept: "de-AT, en;q=0.5", want: "de"},
		"chosen before":        {path: "/", accept: "de", cookie: "language=es", want: "es"},
		"chosen now":           {path: "/?language=en", accept: "de", cookie: "language=es", want: "en"},
		"pseudo":               {path: "/?language=en-XA", want: "en-XA"},
		"none that there is":   {path: "/?language=tlh", accept: "de", want: "de"},
		"a cookie of nonsense": {path: "/", cookie: "language=../..", want: "en"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, w := visit(t, tt.path, http.Header{"Cookie": {tt.cookie}, "Accept-Language": {tt.accept}})
			if got := page.Language(c); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			answer := page.WithErrors(nil)(func(echo.Context) error { return nil })
			if err := answer(c); err != nil {
				t.Fatal(err)
			}
			kept := w.Header().Get("Set-Cookie")
			chosen := strings.Contains(tt.path, "="+tt.want)
			if chosen != strings.HasPrefix(kept, "language="+tt.want+";") || !chosen && kept != "" {
				t.Errorf("the cookie is %q", kept)
			}
		})
	}
}

func TestFrame_LinksLanguages(t *testing.T) {
	t.Parallel()
	c, _ := visit(t, "/?a=1&language=de", http.Header{})
	got := page.Files{}.NewFrame(c).Languages
	want := page.Link{Path: "?a=1&language=de", Text: "Deutsch", Language: "de", Current: true}
	if len(got) != len(texts.Languages) || got[0].Current || got[0].Path != "?a=1&language=en" || got[1] != want {
		t.Errorf("got %+v", got)
	}
}

func TestRender_WritesForTheReader(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"templates/one.html": {Data: []byte(
		`{{define "main"}}{{end}}{{define "part"}}{{say "frame.signedInAs" "name" .Name}}; ` +
			`{{(when .At).Text}}; {{clock .Date}}; {{ms 2500}}; {{number 12345}}; ` +
			`{{linked .Linked "there?a=1&b=2"}}; {{say .None}}.{{end}}`)}}
	templates, err := page.ParseTemplates(files, map[string]any{"maxReason": func() int { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	data := struct {
		Name, Date string
		At         time.Time
		Linked     texts.Text
		None       texts.Text
	}{
		Name: "<Ann>", At: time.Date(2026, 3, 5, 13, 3, 4, 0, time.UTC), Date: "2026-03-05T13:03:04.000+00:00",
		Linked: texts.Text{Code: "See [{place}] & more", Values: texts.Values{"place": "<x>"}},
	}
	for name, tt := range map[string]struct{ language, zone, want string }{
		"English": {
			language: "en", zone: "UTC",
			want: "Signed in as &lt;Ann&gt;; 5 Mar 2026, 13:03:04 UTC; 13:03; 2.5\u00a0s; 12,345; ",
		},
		"German": {
			language: "de", zone: "Europe/Berlin",
			want: "Angemeldet als &lt;Ann&gt;; 5. März 2026, 14:03:04 CET; 14:03; 2,5\u00a0s; 12.345; ",
		},
		"Spanish": {
			language: "es", zone: "Asia/Kolkata",
			want: "Sesión iniciada como &lt;Ann&gt;; 5 mar 2026, 18:33:04 IST; 18:33; 2,5\u00a0s; 12.345; ",
		},
		"no such zone": {
			language: "en", zone: "../../etc/passwd", want: "Signed in as",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := visit(t, "/?language="+tt.language, http.Header{"Cookie": {"timezone=" + tt.zone}})
			for range 3 { // copies of templates are used again
				got, err := templates.Render(page.NewReader(c), "one.html", "part", data)
				if err != nil || !strings.HasPrefix(string(got), tt.want) ||
					!strings.HasSuffix(string(got), `; See <a href="there?a=1&amp;b=2">{place}</a> &amp; more; .`) {
					t.Errorf("got %s (%v), want %s", got, err, tt.want)
				}
			}
		})
	}
}

func TestLinked(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"templates/one.html": {Data: []byte(
		`{{define "main"}}{{end}}{{define "part"}}{{linked .Text .Path}}{{end}}`)}}
	templates, err := page.ParseTemplates(files, map[string]any{"maxReason": func() int { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := visit(t, "/", http.Header{})
	render := func(path, value string) (string, error) {
		data := struct {
			Text texts.Text
			Path string
		}{Path: path, Text: texts.Text{Code: "frame.signedInAs", Values: texts.Values{"name": value}}}
		got, err := templates.Render(page.NewReader(c), "one.html", "part", data)
		return string(got), err
	}
	if got, err := render("a?b=1&c=2", "[<b>]"); err != nil || got != "Signed in as [&lt;b&gt;]" {
		t.Errorf("got %s (%v), want the brackets of the value", got, err)
	}
	if got, err := render("javascript:alert(1)", ""); err == nil {
		t.Errorf("got %s, want an error", got)
	}
}
