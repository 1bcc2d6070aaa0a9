package browser

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// form is a page with each kind of control. The answer lists the values that were sent.
const form = `
<form method="post" action="/sent">
<p><label for="why">Reason</label> <input id="why" name="why" aria-describedby="hint" value="before"
><span id="hint">Who reads it knows why</span></p>
<p><label>Longest wait in ms <input type="number" name="wait" value="1000"></label></p>
<p><label>Until <input type="datetime-local" name="until"></label></p>
<p><label>Outcome <select name="outcome"><option value="">Any</option
><option value="refused">Refused by the lock</option></select></label></p>
<p><label><input type="checkbox" name="sure" style="pointer-events:none"> I am sure</label></p>
<p style="height:2000px">Far above</p>
<button>Send</button>
</form>`

// serveForm serves the form and its answer, and returns the URL.
func serveForm(t testing.TB) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writePage(w, form) })
	mux.HandleFunc("/sent", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		writePage(w, fmt.Sprintf("<p id=got>why=%s wait=%s until=%s outcome=%s sure=%s</p>",
			html.EscapeString(r.FormValue("why")),
			r.FormValue("wait"), r.FormValue("until"), r.FormValue("outcome"), r.FormValue("sure")))
	})
	return startServer(t, mux)
}

func TestPage_FillsAndSendsAForm(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"with scripts": nil, "without scripts": {WithoutScript()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, opts...)
			p.Goto(serveForm(t))
			p.Fill("Reason", "Two machines <at> once")
			p.Fill("Longest wait in ms", "2500")
			p.Fill("Until", "2026-03-01T14:03")
			p.Select("Outcome", "Refused by the lock")
			p.Click("I am sure")
			if e := p.Find("I am sure"); !e.Checked {
				t.Errorf("got the box %+v after the click, want it ticked", e)
			}
			p.Click("Send")
			want := "why=Two machines <at> once wait=2500 until=2026-03-01T14:03 outcome=refused sure=on"
			if got := p.Text("#got"); got != want {
				t.Errorf("the server got %q, want %q", got, want)
			}
			if got := p.Status(); got != http.StatusUnprocessableEntity {
				t.Errorf("got status %d, want 422", got)
			}
		})
	}
}

func TestPage_Keyboard(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(serveForm(t))
	p.TabTo("Reason")
	p.Type("typed")
	p.TabTo("Outcome")
	p.Press("ArrowDown")
	p.TabTo("I am sure")
	p.Press("Space")
	p.Press("Tab")
	if got := p.Focused(); got != "Send" {
		t.Errorf("got the focus on %q, want it on Send", got)
	}
	p.Press("Shift+Tab")
	if got := p.Focused(); got != "I am sure" {
		t.Errorf("got the focus on %q, want it back on the box", got)
	}
	p.TabTo("Send")
	p.Press("Enter")
	p.See("why=typed wait=1000 until= outcome=refused sure=on")
}

func TestPage_Find(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{"/": form + `
		<label>TTL <input aria-invalid="true" disabled value="7"></label>
		<label>Left <meter value="0.25">a quarter</meter></label>
		<details><summary>More</summary><p>Inside</p></details>`}))
	e := p.Find("Reason")
	if e.Role != "textbox" || e.Value != "before" || e.Description != "Who reads it knows why" || e.Invalid || e.Disabled {
		t.Errorf("got %+v, want a valid text field with its value and hint", e)
	}
	if e := p.Find("TTL"); !e.Invalid || !e.Disabled || e.Value != "7" {
		t.Errorf("got %+v, want an invalid and disabled field", e)
	}
	if e := p.Find("Left"); e.Role != "meter" || e.Value != "0.25" {
		t.Errorf("got %+v, want a meter of 0.25", e)
	}
	p.Gone("Inside")
	p.Click("More")
	p.See("Inside")
	if e := p.Find("More"); !e.Expanded {
		t.Errorf("got %+v, want it expanded", e)
	}
}

func TestPage_SeeAndGone(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{"/": `<p id=a>Not yet</p><button>Remove</button><script>
		const a = document.getElementById("a")
		setTimeout(() => { a.innerHTML = "A lock\n\n of <b>one</b> patron" }, 300)
		document.querySelector("button").onclick = () => setTimeout(() => { a.remove() }, 300)</script>`}))
	p.See("A lock of one patron")
	p.Click("Remove")
	p.Gone("A lock of one patron")
}

// A look waits for a page that the server is slow to send. The next one must not come too late.
func TestPage_LooksAgainAfterASlowLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Page{tab: &tab{t: t, ctx: t.Context(), patience: patience}}
		looks := 0
		p.waitUntil("looking twice", func(context.Context) error {
			if looks++; looks == 2 {
				return nil
			}
			<-time.After(patience / 2)
			return errors.New("the page is old")
		})
	})
}

func TestPage_Attribute(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{
		"/": `<ul><li><time datetime="2026-03-01">Sunday</time></li><li><time>Monday</time></li></ul>`,
	}))
	if got := p.Attribute("time", "datetime"); got != "2026-03-01" {
		t.Errorf("got %q, want the date of the first element", got)
	}
	if got := p.In("Monday").Attribute("time", "datetime"); got != "" {
		t.Errorf("got %q, want none", got)
	}
}

func TestPage_WithEvents(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writePage(w, `<p id=n>none</p><button>Pause</button><script>
			const source = new EventSource("/events")
			source.onmessage = e => { document.getElementById("n").textContent = "news " + e.data }
			document.querySelector("button").onclick = () => { source.close(); document.body.append("paused") }</script>`)
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", n)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	})
	p := chromium.Open(t)
	p.Goto(startServer(t, mux))
	p.See("news 1")
	p.Click("Pause")
	p.See("paused")
	if before, after := p.Text("#n"), p.Text("#n"); before != after {
		t.Errorf("got %q and then %q while paused, want the same text", before, after)
	}
}

func TestPage_In(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{"/": `
		<section aria-label="Locks"><table>
			<tr><td>p-1</td><td><button onclick="this.closest('tr').remove()">Release</button></td></tr>
			<tr><td>p-2</td><td><button>Release</button></td></tr></table></section>
		<section aria-label="History"><p>p-1 was refused</p></section>`}))
	p.In("History").See("p-1 was refused")
	p.In("p-1").Click("Release")
	p.In("Locks").Gone("p-1")
	p.In("Locks").See("p-2")
	p.See("p-1 was refused")
}

func TestOptions(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		writePage(w, `<style>
			.dark, .narrow { display: none }
			@media (prefers-color-scheme: dark) { .dark { display: block } }
			@media (max-width: 640px) and (min-resolution: 2dppx) { .narrow { display: block } }
			</style><p class=dark>dark</p><p class=narrow>narrow</p>
			<noscript>noscript</noscript><script>document.write("scripts ")</script>
			<p>tenant `+r.Header.Get("X-Okapi-Tenant")+`, `+user+":"+password+"</p>")
	})
	url := startServer(t, mux)
	for name, c := range map[string]struct {
		opts      []Option
		see, gone []string
	}{
		"none":           {see: []string{"scripts", "tenant , :"}, gone: []string{"noscript", "dark", "narrow"}},
		"without script": {opts: []Option{WithoutScript()}, see: []string{"noscript"}, gone: []string{"scripts"}},
		"dark":           {opts: []Option{Dark()}, see: []string{"dark"}},
		"200 % zoom":     {opts: []Option{Zoom(2)}, see: []string{"narrow"}},
		"headers": {
			opts: []Option{Header("X-Okapi-Tenant", "diku"), BasicAuth("staff", "a secret")},
			see:  []string{"tenant diku, staff:a secret"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, c.opts...)
			p.Goto(url)
			for _, text := range c.see {
				p.See(text)
			}
			for _, text := range c.gone {
				p.Gone(text)
			}
		})
	}
}

func TestPage_With(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t, Dark(), Zoom(2))
	p.Goto(servePages(t, map[string]string{"/": `<style>
		@media screen { .printed { display: none } }
		@media print { .shown { display: none } }
		</style><p class=shown>shown</p><p class=printed>printed</p>
		<p id=width></p><script>
		const write = () => { document.getElementById("width").textContent = innerWidth + " wide" }
		addEventListener("resize", write)
		write()</script>`}))
	p.See("shown 640 wide")
	p.With(func() { p.See("printed 957 wide") }, Paper())
	p.With(func() { p.See("shown 1280 wide") }, Zoom(1))
	p.See("shown 640 wide")
}

func TestChromium_TabsShareNoCookies(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, err := r.Cookie("seen")
		http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1"})
		writePage(w, fmt.Sprintf("<p>known: %t</p>", err == nil))
	})
	url := startServer(t, mux)
	first, second := chromium.Open(t), chromium.Open(t)
	first.Goto(url)
	first.Reload()
	first.See("known: true")
	second.Goto(url)
	second.See("known: false")
}

func TestPage_FindField(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{
		"/": `<a href="#ttl">TTL</a> <label for="ttl">TTL</label> <input id="ttl" value="7">`,
	}))
	if e := p.FindField("TTL"); e.Role != "textbox" || e.Value != "7" {
		t.Errorf("got %+v, want the text field", e)
	}
}

func TestPage_InIgnoresHiddenSigns(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{
		"/": `<section aria-labelledby="state"><h2 id="state"><span aria-hidden="true">✓</span> Done</h2>All is ` +
			`well.</section>`,
	}))
	p.In("Done").See("All is well.")
}
