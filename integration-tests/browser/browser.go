// Package browser lets tests use pages in a real browser as a person does: it
// finds or installs Chromium, opens tabs, finds what is on a page by its text and
// accessible name, waits for what should happen there, and asks axe-core what
// keeps people from using it.
//
// A test binary has one Chromium, which the first tab starts and TestMain stops:
//
//	var chromium browser.Chromium
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		if err := chromium.Close(); err != nil { … }
//		os.Exit(code)
//	}
//
// BROWSER_TESTS=skip skips the tests that open a tab, CHROME_BIN names the
// program, and SCREENSHOTS the folder that pictures for the documentation go to.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// FarHost is a name of this machine which the browser trusts as little as one of
// any other: over plain http it sends no Sec-Fetch-Site there, and pages cannot use
// the clipboard.
const FarHost = "library.test"

const (
	// patience is how long a condition is waited for. It only matters to tests
	// that fail, and machines that test may be slow.
	patience = 20 * time.Second
	// startTimeout bounds the start of Chromium, closeTimeout its end.
	startTimeout = time.Minute
	closeTimeout = 20 * time.Second
)

// Chromium is one browser process that all tests of a binary share. The zero
// value is ready: the first tab starts the process. Tests may use it in parallel.
type Chromium struct {
	mu      sync.Mutex
	started bool
	err     error           // of the start
	ctx     context.Context //nolint:containedctx // chromedp's handle of a browser is a context
	stop    context.CancelFunc
}

// Open opens a tab whose cookies, logins and cache are its own, and closes it
// when the test ends. A test whose page has written an error to the console, an
// uncaught exception or a violation of the Content-Security-Policy among them,
// fails then. Open skips the test when BROWSER_TESTS is "skip", and fails it when
// there is no browser.
func (c *Chromium) Open(t testing.TB, opts ...Option) *Page {
	t.Helper()
	switch mode := os.Getenv("BROWSER_TESTS"); mode {
	case "":
	case "skip":
		t.Skip("BROWSER_TESTS=skip leaves out the tests that need a browser")
	default:
		t.Fatalf("BROWSER_TESTS is %q, not empty or skip", mode)
	}
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	o := newOptions(opts)
	events := newEvents()
	ctx, cancel := chromedp.NewContext(c.ctx,
		chromedp.WithNewBrowserContext(), chromedp.WithListener(events.listen))
	p := &Page{tab: &tab{t: t, ctx: ctx, events: events, options: o, patience: patience}}
	t.Cleanup(func() {
		t.Helper()
		defer cancel()
		p.checkConsole()
	})
	// The first command opens the tab, and the tab lives as long as that command's
	// context: so no time-out of its own.
	watchdog := time.AfterFunc(startTimeout, cancel)
	defer watchdog.Stop()
	if err := chromedp.Do(ctx, chromedp.Func(func(_ context.Context, tg *chromedp.Target) error {
		events.setFrame(tg.TargetID)
		return nil
	}), o.apply); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	go p.dismissDialogs()
	return p
}

// start finds and starts Chromium once; later calls return the first one's error.
func (c *Chromium) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return c.err
	}
	c.started = true
	program, err := newFinder().chromium(context.Background())
	if err != nil {
		c.err = err
		return err
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true), // all pages are this machine's
		chromedp.Flag("host-resolver-rules", "MAP "+FarHost+" 127.0.0.1"),
		chromedp.Flag("enable-blink-features", "LangAttributeAwareFormControlUI"), // see european
	)
	allocated, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, cancel := chromedp.NewContext(allocated)
	watchdog := time.AfterFunc(startTimeout, cancel)
	defer watchdog.Stop()
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		stop()
		c.err = fmt.Errorf("starting %s: %w", program, err)
		return c.err
	}
	c.ctx, c.stop = ctx, stop
	return nil
}

// Close stops the browser and removes its profile. It does nothing when no tab
// was ever opened. Open must not be called after it.
func (c *Chromium) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started {
		c.started, c.err = true, errors.New("the browser is closed")
		return nil
	}
	if c.err != nil {
		return nil // it never ran
	}
	c.err = errors.New("the browser is closed")
	ctx, cancel := context.WithTimeout(c.ctx, closeTimeout)
	defer cancel()
	err := chromedp.Cancel(ctx)
	c.stop()
	if err != nil {
		return fmt.Errorf("closing Chromium: %w", err)
	}
	return nil
}
