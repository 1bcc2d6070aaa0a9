package browser

import "testing"

func TestPage_FindField(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(serve(t, map[string]string{"/": `<a href="#ttl">TTL</a> <label for="ttl">TTL</label> <input id="ttl" value="7">`}))
	if e := p.FindField("TTL"); e.Role != "textbox" || e.Value != "7" {
		t.Errorf("got %+v, want the text field", e)
	}
}

func TestPage_InIgnoresHiddenSigns(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(serve(t, map[string]string{
		"/": `<section aria-labelledby="state"><h2 id="state"><span aria-hidden="true">✓</span> Done</h2>All is well.</section>`,
	}))
	p.In("Done").See("All is well.")
}
