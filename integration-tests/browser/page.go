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

// interval is the time between two looks at a page.
const interval = 50 * time.Millisecond

// Page is what a tab shows, or a part of it (see In). Its methods wait for what
// they need and fail the test, with what the page shows then and a picture of it,
// when that does not come. A Page is used by one goroutine.
type Page struct {
	*tab

	part string // of In; empty for the whole page
}

// tab is a tab and the test that it belongs to.
type tab struct {
	t        testing.TB
	ctx      context.Context //nolint:containedctx // chromedp's handle of a tab is a context
	events   *events
	options  *options
	patience time.Duration // how long a condition is waited for
	axe      string        // the script, once it was needed
}

// In returns the one part of the page that has the name: a region, group, form,
// dialog, table, row, list item or the like. A row and a list item are found by
// any of their text too. The result's methods look there only.
func (p *Page) In(name string) *Page { return &Page{tab: p.tab, part: name} }

// Goto opens the address and waits until the page is there, whatever its status.
func (p *Page) Goto(url string) {
	p.t.Helper()
	p.do("opening "+url, chromedp.Navigate(url))
	p.settle()
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.t.Helper()
	p.do("loading again", chromedp.Reload())
	p.settle()
}

// Status is the HTTP status that the page came with; 0 before the first page.
func (p *Page) Status() int { return p.events.lastStatus() }

// URL is the page's address.
func (p *Page) URL() string {
	p.t.Helper()
	return ask(p, "the address", chromedp.Evaluate[string]("location.href"))
}

// See waits until the texts are to be seen, one after the other. Any white space
// equals any other. What is typed into fields is not seen by it; see Find.
func (p *Page) See(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.until(fmt.Sprintf("seeing %q", text), func(ctx context.Context) error {
			seen, err := p.seen(ctx)
			if err == nil && !strings.Contains(seen, plain(text)) {
				err = errors.New("it is not there")
			}
			return err
		})
	}
}

// Gone waits until the text is not to be seen. The part that In names must be
// there: a text of a row that is gone itself is looked for in the table.
func (p *Page) Gone(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("seeing %q go", text), func(ctx context.Context) error {
		seen, err := p.seen(ctx)
		if err == nil && strings.Contains(seen, plain(text)) {
			err = errors.New("it is still there")
		}
		return err
	})
}

// Text waits for an element that the CSS selector matches, and returns the text
// that is to be seen in the first one.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return plain(p.ofElement(selector, "reading "+selector, `e.innerText`))
}

// Attribute waits for an element that the CSS selector matches, and returns the
// first one's attribute with that name; empty when it has none.
func (p *Page) Attribute(selector, name string) string {
	p.t.Helper()
	return p.ofElement(selector, "reading "+name+" of "+selector, `e.getAttribute(name) || ""`, name)
}

// ofElement waits for an element that the CSS selector matches, and returns what
// the expression makes of e, the first one, and name.
func (p *Page) ofElement(selector, what, expression string, name ...any) string {
	p.t.Helper()
	var value string
	p.until(what, func(ctx context.Context) error {
		root, err := p.root(ctx)
		if err != nil {
			return err
		}
		found, err := onObject[*string](ctx, root, `function (selector, name) { const e = this.querySelector(selector); return e && (`+expression+`) }`,
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

// seen is the text of the page, or of its part, that is to be seen.
func (p *Page) seen(ctx context.Context) (string, error) {
	root, err := p.root(ctx)
	if err != nil {
		return "", err
	}
	text, err := onObject[string](ctx, root, `function () { return (this.body || this).innerText }`)
	return plain(text), err
}

// plain makes all white space one blank each.
func plain(text string) string { return strings.Join(strings.Fields(text), " ") }

// until looks again and again until look returns nil, and fails the test with its
// last error when the patience is over.
func (p *Page) until(what string, look func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, p.patience)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last error
	for {
		err := look(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if last == nil {
				last = err
			}
			p.fail("%s: not within %s: %v", what, p.patience, last)
		}
	}
}

// settle waits until the tab is not on its way to another page. What a click or a
// key has begun is known once the page answers a question that came after it.
func (p *Page) settle() {
	p.t.Helper()
	p.until("loading the page", func(ctx context.Context) error {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[int]("0")); err != nil {
			return err
		}
		if p.events.isLoading() {
			return errors.New("it is still loading")
		}
		return nil
	})
}

// do runs an action in bounded time.
func (p *Page) do(what string, action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ask(p, what, action)
}

// ask runs an action in bounded time and returns its answer.
func ask[T any](p *Page, what string, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, p.patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		p.fail("%s: %v", what, err)
	}
	return v
}

// dismissDialogs answers the browser's own dialogs, which would hold everything
// up, until the tab is closed.
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

// Height is the height of the whole page in CSS pixels, of what is out of sight too.
func (p *Page) Height() float64 {
	p.t.Helper()
	return ask(p, "the height", chromedp.Evaluate[float64]("document.documentElement.scrollHeight"))
}
