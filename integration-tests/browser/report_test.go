package browser

import (
	"bytes"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPage_FailureShowsThePage(t *testing.T) {
	t.Parallel()
	url := servePages(t, map[string]string{
		"/": `<button>Save</button> <button>Save</button> <button disabled>Release</button>
			<label>Reason <input></label> <label>Name <input maxlength=2></label>
			<label>Outcome <select><option>Any</option></select></label>
			<div style="position:relative"><button>Under</button><div id=veil style="position:absolute;inset:0"></div></div>`,
		"/{$}": `<p>Nothing but this</p>`,
	})
	for name, c := range map[string]struct {
		do   func(*Page)
		says []string
	}{
		"no such text": {
			func(p *Page) { p.See("a lock") },
			[]string{
				`seeing "a lock": not within 1s: it is not there`, "/form", "A test's page", "status 200", "Reason", "picture",
			},
		},
		"text stays":       {func(p *Page) { p.Gone("Reason") }, []string{"it is still there"}},
		"no such button":   {func(p *Page) { p.Click("Send") }, []string{`clicking "Send"`, `there are: button "Save"`}},
		"two such buttons": {func(p *Page) { p.Click("Save") }, []string{"2 of them"}},
		"disabled":         {func(p *Page) { p.Click("Release") }, []string{"disabled"}},
		"covered":          {func(p *Page) { p.Click("Under") }, []string{"in the way is <div id=veil>"}},
		"no such field":    {func(p *Page) { p.Fill("Because", "x") }, []string{`textbox "Reason"`}},
		"no such option":   {func(p *Page) { p.Select("Outcome", "Refused") }, []string{"there are: Any"}},
		"no such element":  {func(p *Page) { p.Text("h2") }, []string{"no such element"}},
		"no such part":     {func(p *Page) { p.In("Locks").See("x") }, []string{`no part of the page is called "Locks"`}},
		"no such key":      {func(p *Page) { p.Press("Meta+Q") }, []string{"Meta+Q"}},
		"focus elsewhere":  {func(p *Page) { p.Fill("Reason", "x"); p.FocusOn("Outcome") }, []string{`it is on "Reason"`}},
		"too long for it":  {func(p *Page) { p.Fill("Name", "abc") }, []string{`it took "ab" for "abc"`}},
		"never focused":    {func(p *Page) { p.TabTo("Release") }, []string{"Reason"}},
		"no server":        {func(p *Page) { p.Goto("http://127.0.0.1:1/") }, []string{"opening http://127.0.0.1:1/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectFailure(t, func(t testing.TB) {
				p := chromium.Open(t)
				p.Goto(url + "/form")
				p.patience = time.Second
				c.do(p)
			}, c.says...)
		})
	}
}

func TestPage_ConsoleErrorsFailTheTest(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for path, main := range map[string]string{
		"/console":   `<script>console.error("no", {lock: 1})</script>`,
		"/exception": `<script>nothing.there()</script>`,
		"/missing":   `<img alt="a lock" src="/nowhere.png">`,
		"/dialog":    `<script>alert("Sure?")</script>`,
		"/log":       `<script>console.log("fine"); console.warn("fine")</script>`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { writePage(w, main) })
	}
	mux.HandleFunc("/csp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "script-src 'self'; img-src data:")
		writePage(w, `<script>document.title = "inline"</script>`)
	})
	mux.HandleFunc("/refused", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		writePage(w, `<p>You may not</p>`)
	})
	url := startServer(t, mux)
	for path, says := range map[string][]string{
		"/console":   {"console.error: no Object"},
		"/exception": {"ReferenceError: nothing is not defined"},
		"/missing":   {"404", "/nowhere.png"},
		"/dialog":    {"alert", "Sure?"},
		"/csp":       {"Content Security Policy"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			expectFailure(t, func(t testing.TB) { chromium.Open(t).Goto(url + path) }, says...)
			t.Run("an expected error", func(t *testing.T) {
				p := chromium.Open(t)
				p.ExpectError(says[0])
				p.Goto(url + path)
			})
		})
	}
	for _, path := range []string{"/log", "/refused"} {
		t.Run(path+" is no error", func(t *testing.T) {
			t.Parallel()
			chromium.Open(t).Goto(url + path)
		})
	}
	t.Run("an expected error that does not come", func(t *testing.T) {
		t.Parallel()
		expectFailure(t, func(t testing.TB) {
			p := chromium.Open(t)
			p.ExpectError("ERR_FAILED")
			p.Goto(url + "/log")
		}, "ERR_FAILED")
	})
}

func TestPage_Axe(t *testing.T) {
	t.Parallel()
	const faint = `<p style="color:#999;background:#fff">Hard to read</p>`
	url := servePages(t, map[string]string{
		"/picture": `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`,
		"/faint":   faint,
		"/clean":   form,
		"/dark": `<style>@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } p { color: #444 } ` +
			`}</style><p>Fine in the light</p>`,
	})
	for name, c := range map[string]struct {
		path string
		opts []Option
		says []string
	}{
		"a picture without a text": {path: "/picture", says: []string{"[critical] image-alt", "<img src="}},
		"low contrast":             {path: "/faint", says: []string{"[serious] color-contrast", "Hard to read"}},
		"low contrast, no scripts": {
			path: "/faint", opts: []Option{WithoutScript()}, says: []string{"[serious] color-contrast"},
		},
		"low contrast when dark":     {path: "/dark", opts: []Option{Dark()}, says: []string{"[serious] color-contrast"}},
		"fine in the light":          {path: "/dark"},
		"a clean page":               {path: "/clean"},
		"a clean page, no scripts":   {path: "/clean", opts: []Option{WithoutScript()}},
		"a clean page at 200 % zoom": {path: "/clean", opts: []Option{Zoom(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := func(t testing.TB) {
				p := chromium.Open(t, c.opts...)
				p.Goto(url + c.path)
				p.CheckAxe()
			}
			if c.says == nil {
				check(t)
				return
			}
			expectFailure(t, check, c.says...)
		})
	}
}

// The test sets an environment variable, so it is not parallel.
func TestPage_Screenshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	t.Setenv("SCREENSHOTS", "")
	p := chromium.Open(t, Size(600, 400), Zoom(2))
	p.Goto(serveForm(t))
	p.Screenshot("form") // SCREENSHOTS is empty
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("got %v for the folder, want that it does not exist", err)
	}
	t.Setenv("SCREENSHOTS", dir)
	p.Screenshot("form")
	data, err := os.ReadFile(filepath.Join(dir, "form.png"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if img.Width != 600 || img.Height < 4000 { // the form has 2000 CSS pixels of space
		t.Errorf("got %d × %d pixels, want 600 wide and the whole height", img.Width, img.Height)
	}
	expectFailure(t, func(tb testing.TB) {
		page := *p.tab
		page.t = tb
		(&Page{tab: &page}).Screenshot("../form")
	}, "a file name without folders")
}

// The test sets an environment variable, so it is not parallel.
func TestChromium_SkipsTests(t *testing.T) {
	t.Setenv("BROWSER_TESTS", "off")
	expectFailure(t, func(t testing.TB) { chromium.Open(t) }, `BROWSER_TESTS is "off"`)
	t.Run("skip", func(t *testing.T) {
		t.Setenv("BROWSER_TESTS", "skip")
		t.Cleanup(func() {
			if !t.Skipped() {
				t.Error("the test was not skipped")
			}
		})
		chromium.Open(t)
	})
}

func TestPage_FitsWidth(t *testing.T) {
	t.Parallel()
	const wide = `<div style="width: 1000px; height: 1em"></div>`
	base := servePages(t, map[string]string{
		"/own": `<p id="long" style="width: 900px">Long</p>`,
		"/box": `<div class="scroll" style="overflow-x: auto">` + wide + `</div>`,
	})
	open := func(t testing.TB, path string, opts ...Option) {
		t.Helper()
		p := chromium.Open(t, opts...)
		p.Goto(base + path)
		p.CheckWidth()
	}
	open(t, "/own")
	expectFailure(t, func(t testing.TB) { open(t, "/own", Zoom(2)) }, "too wide for the window on "+base+"/own",
		`<p id="long"`)
	open(t, "/box", Zoom(2))
	expectFailure(t, func(t testing.TB) {
		p := chromium.Open(t)
		p.Goto(base + "/box")
		p.With(p.CheckWidth, Paper())
	}, "too wide for the window on "+base+"/box", `<div style="width: 1000px`)
}
