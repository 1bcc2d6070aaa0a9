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
