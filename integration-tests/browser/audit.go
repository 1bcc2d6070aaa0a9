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

// CheckAxe runs axe-core on the page. It fails the test for each serious or critical
// violation, and logs the others.
func (p *Page) CheckAxe() {
	p.t.Helper()
	for _, v := range p.runAxe() {
		if slices.Contains([]string{"serious", "critical"}, v.Impact) {
			p.t.Errorf("axe on %s: %s", p.URL(), v)
		} else {
			p.t.Logf("axe on %s: %s", p.URL(), v)
		}
	}
}

// runAxe runs axe-core and returns all violations.
func (p *Page) runAxe() []violation {
	p.t.Helper()
	if p.axe == "" {
		script, err := newFinder().loadAxe(p.ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		p.axe = script
	}
	if p.options.noScript { // axe-core is a script; those of the page did not run when it was loaded
		p.enableScripts(true)
		defer p.enableScripts(false)
	}
	if !runAction(p, "looking for axe", chromedp.Evaluate[bool](`"axe" in window`)) {
		p.runVoid("loading axe", chromedp.Evaluate[chromedp.Void](p.axe))
	}
	return runAction(p, "running axe", chromedp.Evaluate[[]violation](`axe.run({resultTypes: ["violations"]}).then(r => r.violations.map(v => ({
		ID: v.id, Impact: v.impact, Help: v.help, HelpURL: v.helpUrl,
		Nodes: v.nodes.map(n => ({Target: n.target.flat(Infinity), HTML: n.html, FailureSummary: n.failureSummary})),
	})))`, chromedp.EvalAwaitPromise))
}

func (p *Page) enableScripts(enabled bool) {
	p.t.Helper()
	p.runVoid("turning scripts on or off", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !enabled})
		return chromedp.Void{}, err
	})
}

// String returns the rule and all elements that break it.
func (v violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] %s: %s (%s)", v.Impact, v.ID, v.Help, v.HelpURL)
	for _, n := range v.Nodes {
		fmt.Fprintf(&b, "\n  %s: %s\n    %s", strings.Join(n.Target, " "), n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n    "))
	}
	return b.String()
}

// tooWide lists elements beyond the right edge of the window. On screen it leaves out what
// scrolls in a box of its own, such as a wide table.
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
	return slides && !wide.length ? ["no element"] : wide.map(e => e.cloneNode().outerHTML);
})()`

// CheckWidth fails the test if the page is wider than its window or its paper, and names
// the elements that are too wide.
func (p *Page) CheckWidth() {
	p.t.Helper()
	for _, element := range runAction(p, "finding elements that are too wide", chromedp.Evaluate[[]string](tooWide)) {
		p.t.Errorf("too wide for the window on %s: %s", p.URL(), element)
	}
}
