package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// violation is a rule of axe-core that a page breaks.
type violation struct {
	ID, Impact, Help, HelpURL string
	Nodes                     []struct {
		Target         []string
		HTML           string
		FailureSummary string
	}
}

// Axe lets axe-core check the page and fails the test for each serious and each
// critical violation. Lighter ones are logged.
func (p *Page) Axe() {
	p.t.Helper()
	for _, v := range p.audit() {
		if slices.Contains([]string{"serious", "critical"}, v.Impact) {
			p.t.Errorf("axe on %s: %s", p.URL(), v)
		} else {
			p.t.Logf("axe on %s: %s", p.URL(), v)
		}
	}
}

func (p *Page) audit() []violation {
	p.t.Helper()
	if p.axe == "" {
		script, err := newFinder().axe(p.ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		p.axe = script
	}
	if p.options.noScript { // axe is one itself; the page's own were left out when it was loaded
		p.scripts(true)
		defer p.scripts(false)
	}
	p.do("loading axe", chromedp.Evaluate[chromedp.Void](p.axe))
	return ask(p, "running axe", chromedp.Evaluate[[]violation](`axe.run({resultTypes: ["violations"]}).then(r => r.violations.map(v => ({
		ID: v.id, Impact: v.impact, Help: v.help, HelpURL: v.helpUrl,
		Nodes: v.nodes.map(n => ({Target: n.target.flat(Infinity), HTML: n.html, FailureSummary: n.failureSummary})),
	})))`, chromedp.EvalAwaitPromise))
}

func (p *Page) scripts(enabled bool) {
	p.t.Helper()
	p.do("turning scripts on or off", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !enabled})
		return chromedp.Void{}, err
	})
}

// String tells the rule and all places that break it.
func (v violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] %s: %s (%s)", v.Impact, v.ID, v.Help, v.HelpURL)
	for _, n := range v.Nodes {
		fmt.Fprintf(&b, "\n  %s: %s\n    %s", strings.Join(n.Target, " "), n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n    "))
	}
	return b.String()
}

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
