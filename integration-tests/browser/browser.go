// Package browser drives pages in a real browser for tests. It finds or installs Chromium
// and opens tabs. It finds elements by text and accessible name, waits for changes, and
// checks with axe-core that pages are accessible.
//
// A test binary has one Chromium. The first tab starts it, TestMain stops it:
//
//	var chromium browser.Chromium
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		if err := chromium.Close(); err != nil { … }
//		os.Exit(code)
//	}
//
// BROWSER_TESTS=skip skips the tests that open a tab. CHROME_BIN names the program.
// SCREENSHOTS names the folder of the documentation's pictures.
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

// FarHost is a name of this host that the browser treats as another host. Over plain
// HTTP it sends no Sec-Fetch-Site there, and pages cannot use the clipboard.
const FarHost = "library.test"

const (
	// patience is the longest wait for a condition. It is long, because machines that run
	// tests may be slow.
	patience = 3 * time.Minute
	// startTimeout bounds the start of Chromium, and closeTimeout its end.
	startTimeout = patience
	closeTimeout = 20 * time.Second
)

// Chromium is one browser process that all tests of a binary share, also in parallel. The
// zero value is ready, and the first tab starts the process.
type Chromium struct {
	mu      sync.Mutex
	started bool
	err     error           // of the start
	ctx     context.Context //nolint:containedctx // chromedp's handle of a browser is a context
	stop    context.CancelFunc
}

// Open opens a tab with its own cookies, logins and cache, and closes it when the test
// ends. Errors in the page's console fail the test then, such as uncaught exceptions and
// violations of the Content-Security-Policy. Open skips the test if BROWSER_TESTS is "skip",
// and fails it if there is no browser.
func (c *Chromium) Open(t testing.TB, opts ...Option) *Page {
	t.Helper()
	switch mode := os.Getenv("BROWSER_TESTS"); mode {
	case "":
	case "skip":
		t.Skip("BROWSER_TESTS=skip leaves out the tests that need a browser")
	default:
		t.Fatalf("BROWSER_TESTS is %q, not empty or skip", mode)
	}
	if err := c.startProcess(); err != nil {
		t.Fatal(err)
	}
	o := newOptions(opts)
	events := newEvents()
	ctx, cancel := chromedp.NewContext(c.ctx,
		chromedp.WithNewBrowserContext(), chromedp.WithListener(events.handleEvent))
	p := &Page{tab: &tab{t: t, ctx: ctx, events: events, options: o, patience: patience}}
	t.Cleanup(func() {
		t.Helper()
		defer cancel()
		p.checkConsole()
	})
	// The first command opens the tab, which lives as long as the command's context. So the
	// context has no time-out.
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

// startProcess finds and starts Chromium once. Later calls return the error of the first.
func (c *Chromium) startProcess() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return c.err
	}
	c.started = true
	program, err := newFinder().findChromium(context.Background())
	if err != nil {
		c.err = err
		return err
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true), // all pages are on this host
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

// Close stops the browser, if it runs, and removes its profile. Open must not be called
// after Close.
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
