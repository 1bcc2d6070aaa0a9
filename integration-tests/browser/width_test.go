package browser

import "testing"

func TestPage_FitsWidth(t *testing.T) {
	t.Parallel()
	const wide = `<div style="width: 1000px; height: 1em"></div>`
	base := serve(t, map[string]string{
		"/own": `<p id="long" style="width: 900px">Long</p>`,
		"/box": `<div class="scroll" style="overflow-x: auto">` + wide + `</div>`,
	})
	open := func(t testing.TB, path string, opts ...Option) {
		t.Helper()
		p := chromium.Open(t, opts...)
		p.Goto(base + path)
		p.FitsWidth()
	}
	open(t, "/own")
	fails(t, func(t testing.TB) { open(t, "/own", Zoom(2)) }, "too wide for the window on "+base+"/own", `<p id="long"`)
	open(t, "/box", Zoom(2))
	fails(t, func(t testing.TB) {
		p := chromium.Open(t)
		p.Goto(base + "/box")
		p.OnPaper(p.FitsWidth)
	}, "too wide for the window on "+base+"/box", `<div style="width: 1000px`)
}
