package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// The time between two checks of a page. A check of a large page is expensive, so the pause is longer
// after it. It has a bound, because a check also waits for a page that the server is slow to send.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = time.Second
)

// Page is the page in a tab, or a part of it (see In). Its methods wait for what they need.
// If that does not come, they fail the test with the text and a picture of the page. Only
// one goroutine may use a Page.
type Page struct {
	*tab

	part string // the name of In; empty for the whole page
}

// tab is a tab and the test that it belongs to.
type tab struct {
	t        testing.TB
	ctx      context.Context //nolint:containedctx // chromedp's handle of a tab is a context
	events   *events
	options  *options
	patience time.Duration // the longest wait for a condition
	axe      string        // the script of axe-core, loaded once
}

// In returns the part of the page with the name, such as a region, form, dialog, table or
// row. It finds rows and list items by any text in them, too. The methods of the result
// search that part only.
func (p *Page) In(name string) *Page { return &Page{tab: p.tab, part: name} }

// Goto opens the address and waits until the page is loaded, with any status.
func (p *Page) Goto(url string) {
	p.t.Helper()
	p.runVoid("opening "+url, chromedp.Navigate(url))
	p.waitForLoad()
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.t.Helper()
	p.runVoid("loading again", chromedp.Reload())
	p.waitForLoad()
}

// Back goes back to the page before.
func (p *Page) Back() {
	p.t.Helper()
	p.runVoid("going back", chromedp.NavigateBack())
	p.waitForLoad()
}

// Status returns the HTTP status of the page, 0 before the first page.
func (p *Page) Status() int { return p.events.lastStatus() }

// URL returns the page's address.
func (p *Page) URL() string {
	p.t.Helper()
	return runAction(p, "reading the address", chromedp.Evaluate[string]("location.href"))
}

// See waits until each of the texts is visible. White space is folded. See does not read the
// content of fields; Find does.
func (p *Page) See(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.waitUntil(fmt.Sprintf("seeing %q", text), func(ctx context.Context) error {
			seen, err := p.readText(ctx)
			if err == nil && !strings.Contains(seen, foldSpace(text)) {
				err = errors.New("it is not there")
			}
			return err
		})
	}
}

// Gone waits until the text is not visible. The part that In names must exist.
func (p *Page) Gone(text string) {
	p.t.Helper()
	p.waitUntil(fmt.Sprintf("seeing %q go", text), func(ctx context.Context) error {
		seen, err := p.readText(ctx)
		if err == nil && strings.Contains(seen, foldSpace(text)) {
			err = errors.New("it is still there")
		}
		return err
	})
}

// Text waits for an element that matches the CSS selector, and returns the visible text of
// the first one.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return foldSpace(p.readElement(selector, "reading "+selector, `e.innerText`))
}

// Attribute waits for an element that matches the CSS selector, and returns an attribute of
// the first one, empty without the attribute.
func (p *Page) Attribute(selector, name string) string {
	p.t.Helper()
	return p.readElement(selector, "reading "+name+" of "+selector, `e.getAttribute(name) || ""`, name)
}

// Style waits for an element that matches the CSS selector, and returns the property of the first
// one as it is drawn.
func (p *Page) Style(selector, property string) string {
	p.t.Helper()
	return p.readElement(selector, "reading "+property+" of "+selector, `getComputedStyle(e).getPropertyValue(name)`, property)
}

// CheckNear fails the test unless the first element that matches the CSS selector lies within the
// width of the window and the first two screens, without scrolling aside.
func (p *Page) CheckNear(selector string) {
	p.t.Helper()
	box := p.readElement(selector, "the place of "+selector, `(() => {
		const r = e.getBoundingClientRect(), page = document.documentElement;
		const near = r.width > 0 && r.left >= 0 && r.right <= page.clientWidth && r.top + scrollY >= 0 && r.bottom + scrollY <= 2 * innerHeight;
		return near ? "" : JSON.stringify(r);
	})()`)
	if box != "" {
		p.t.Errorf("%s on %s is not on the first two screens: %s", selector, p.URL(), box)
	}
}

// readElement waits for an element that matches the CSS selector. It evaluates the
// expression with e, the first element, and name.
func (p *Page) readElement(selector, what, expression string, name ...any) string {
	p.t.Helper()
	var value string
	p.waitUntil(what, func(ctx context.Context) error {
		root, err := p.findRoot(ctx)
		if err != nil {
			return err
		}
		found, err := callOnObject[*string](ctx, root, `function (selector, name) { const e = this.querySelector(selector); return e && (`+expression+`) }`,
			append([]any{selector}, name...)...)
		if err == nil && found == nil {
			err = errors.New("no such element")
		}
		if err == nil {
			value = *found
		}
		return err
	})
	return value
}

// readText returns the visible text of the page, or of its part.
func (p *Page) readText(ctx context.Context) (string, error) {
	root, err := p.findRoot(ctx)
	if err != nil {
		return "", err
	}
	text, err := callOnObject[string](ctx, root, `function () { return (this.body || this).innerText }`)
	return foldSpace(text), err
}

// foldSpace replaces each run of white space by one space.
func foldSpace(text string) string { return strings.Join(strings.Fields(text), " ") }

// waitUntil calls look until it returns nil. After the patience it fails the test with the
// last error. It has patience with the first look however short the page's is: that look says why.
func (p *Page) waitUntil(what string, look func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, p.patience)
	defer cancel()
	patient, stop := context.WithTimeout(p.ctx, patience)
	defer stop()
	var last error
	for first := true; ; first = false {
		began, bounded := time.Now(), ctx
		if first {
			bounded = patient
		}
		err := look(bounded)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-time.After(min(max(shortestPause, 3*time.Since(began)), longestPause)):
		case <-ctx.Done():
			if last == nil {
				last = err
			}
			p.failTest("%s: not within %s: %v", what, p.patience, last)
		}
	}
}

// waitForLoad waits until the tab does not load a page. It first evaluates an expression,
// because events of an earlier click or key arrive before its result.
func (p *Page) waitForLoad() {
	p.t.Helper()
	p.waitUntil("loading the page", func(ctx context.Context) error {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[int]("0")); err != nil {
			return err
		}
		if p.events.isLoading() {
			return errors.New("it is still loading")
		}
		return nil
	})
}

// runVoid runs an action without a result in bounded time.
func (p *Page) runVoid(what string, action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	runAction(p, what, action)
}

// runAction runs an action in bounded time and returns its result.
func runAction[T any](p *Page, what string, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		p.failTest("%s: %v", what, err)
	}
	return v
}

// dismissDialogs closes the browser's own dialogs, which block the page, until the tab is
// closed.
func (t *tab) dismissDialogs() {
	for {
		select {
		case <-t.events.dialogs:
			_, _ = chromedp.Call(t.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		case <-t.ctx.Done():
			return
		}
	}
}

// Height returns the height of the whole page in CSS pixels.
func (p *Page) Height() float64 {
	p.t.Helper()
	return runAction(p, "reading the height", chromedp.Evaluate[float64]("document.documentElement.scrollHeight"))
}
