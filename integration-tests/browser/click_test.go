package browser

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestPage_ClickWaitsForTheNextPage(t *testing.T) {
	t.Parallel()
	const field = `<label>Reason <input></label> <p>%s</p>`
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writePage(w, `<form action="/next"><button>Send</button></form> <a href="/next">Next</a>`+fmt.Sprintf(field, "first"))
	})
	mux.HandleFunc("/next", func(w http.ResponseWriter, r *http.Request) {
		select { // slower than two checks of a page
		case <-time.After(4 * shortestPause):
		case <-r.Context().Done():
		}
		writePage(w, fmt.Sprintf(field, "second")+`<p><a href="#here">Here</a> <a id=here href="/">Home</a>`)
	})
	url := startServer(t, mux)
	for _, name := range []string{"Send", "Next"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t)
			p.Goto(url)
			p.Click(name)
			p.Fill("Reason", "of the second page")
			p.See("second")
			if got := p.Find("Reason").Value; got != "of the second page" {
				t.Errorf("got %q in the second page's field, want the typed value", got)
			}
			p.Click("Here") // opens no other page, so it does not wait
			p.FocusOn("Home")
		})
	}
}

func TestPage_ClickOnAMovingButton(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{"/": `<button style="position:relative">Send</button><script>
		const button = document.querySelector("button"), until = performance.now() + 500
		let moves = true, left = 0
		const timer = setInterval(() => {
			button.style.left = (left += 3) + "px"
			if (performance.now() > until) { moves = false; clearInterval(timer) }
		}, 5)
		button.onclick = () => document.querySelector("main").append(moves ? "too early" : "at rest")</script>`}))
	p.Click("Send")
	p.See("at rest")
}

func TestPage_ClickOnAJumpingButton(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{"/": `<a id=other href="/missing">Other</a>
		<button style="position:relative">Send</button><script>
		const button = document.querySelector("button"), other = document.getElementById("other")
		button.addEventListener("mousemove", () => {
			const box = button.getBoundingClientRect()
			Object.assign(other.style, {position: "absolute", left: box.x + "px", top: box.y + "px",
				width: "200px", height: "50px"})
			button.style.top = "100px"
		}, {once: true})
		button.onclick = () => document.querySelector("main").append("sent")</script>`}))
	p.Click("Send")
	p.See("sent")
}

func TestPage_ClickOnAReplacedButton(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{"/": `<p><button>Send</button></p><p id=sent></p><script>
		const place = document.querySelector("p"), sent = document.getElementById("sent")
		const ready = () => { document.querySelector("button").onclick = () => { sent.append("sent ") } }
		ready()
		document.querySelector("button").addEventListener("mousedown", () => {
			place.innerHTML = "<button>Send</button>"
			ready()
		})</script>`}))
	p.Click("Send")
	if got := p.Text("#sent"); got != "sent" {
		t.Errorf("got %q, want it sent once", got)
	}
}

func TestPage_ClickHappensOnce(t *testing.T) {
	t.Parallel()
	p := chromium.Open(t)
	p.Goto(servePages(t, map[string]string{"/": `
		<button id=button>Button <b>of two words</b></button> <a id=link href="#here">Link</a>
		<label><input id=box type=checkbox> Box</label>
		<input id=drawn type=checkbox style="position:absolute;opacity:0;pointer-events:none"><label for=drawn>Drawn</label>
		<details id=more><summary>More</summary><p>Inside</p></details>
		<button id=busy>Busy</button><p id=here></p><p id=log></p><script>
		const note = name => { document.getElementById("log").append(name + " ") }
		for (const id of ["button", "link", "busy"]) document.getElementById(id).addEventListener("click", () => note(id))
		for (const id of ["box", "drawn"]) document.getElementById(id).addEventListener("change", () => note(id))
		document.getElementById("more").addEventListener("toggle", () => note("more"))
		// A script's click comes before that of the mouse, which still counts.
		document.getElementById("busy").addEventListener("mousedown", () => document.getElementById("button").click())
		</script>`}))
	for _, name := range []string{"Button of two words", "Link", "Box", "Drawn", "More", "Busy"} {
		p.Click(name)
	}
	p.See("busy")
	if got, want := p.Text("#log"), "button link box drawn more button busy"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
