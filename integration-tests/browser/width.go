package browser

import "github.com/chromedp/chromedp"

// tooWide lists what sticks out of the window to the right. What can be scrolled
// within a box of its own, such as a wide table, does not count: but nothing can be
// scrolled on paper.
const tooWide = `(() => {
	const page = document.documentElement, printed = matchMedia("print").matches;
	const slides = page.scrollWidth > page.clientWidth;
	if (!slides && !printed) return [];
	const boxed = e => {
		while ((e = e.parentElement) && e !== document.body) if (getComputedStyle(e).overflowX !== "visible") return true;
		return false;
	};
	const wide = [...document.querySelectorAll("body *")].filter(e =>
		e.checkVisibility() && e.getBoundingClientRect().right > page.clientWidth + 1 && (printed || !boxed(e)));
	return slides && !wide.length ? ["something that is no element"] : wide.map(e => e.cloneNode().outerHTML);
})()`

// FitsWidth fails the test when the page has to be scrolled sideways, or is wider
// than its paper, and names what is too wide.
func (p *Page) FitsWidth() {
	p.t.Helper()
	for _, element := range ask(p, "looking for what is too wide", chromedp.Evaluate[[]string](tooWide)) {
		p.t.Errorf("too wide for the window on %s: %s", p.URL(), element)
	}
}

// Height is the height of the whole page in CSS pixels, of what is out of sight too.
func (p *Page) Height() float64 {
	p.t.Helper()
	return ask(p, "the height", chromedp.Evaluate[float64]("document.documentElement.scrollHeight"))
}
