package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// events records a tab's events: whether it is loading a page, the status of the page, and
// errors in it.
type events struct {
	mu        sync.Mutex
	frame     target.ID // a page's outermost frame has the tab's id
	loading   bool
	status    int
	documents map[network.RequestID]bool // requests for pages, not for resources
	errors    []string
	expected  []string
	dialogs   chan struct{} // holds one value while a dialog waits
}

func newEvents() *events {
	return &events{documents: map[network.RequestID]bool{}, dialogs: make(chan struct{}, 1)}
}

func (e *events) setFrame(id target.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.frame = id
}

// handleEvent records one event. Calls are sequential and in the order of the events.
func (e *events) handleEvent(ev any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch ev := ev.(type) {
	case *page.EventFrameRequestedNavigation:
		if ev.Disposition == page.ClientNavigationDispositionCurrentTab {
			e.setLoading(string(ev.FrameID), true)
		}
	case *page.EventFrameStartedNavigating:
		e.setLoading(string(ev.FrameID), true)
	case *page.EventFrameStartedLoading:
		e.setLoading(string(ev.FrameID), true)
	case *page.EventFrameStoppedLoading:
		e.setLoading(string(ev.FrameID), false)
	case *page.EventNavigatedWithinDocument:
		e.setLoading(string(ev.FrameID), false)
	case *network.EventRequestWillBeSent:
		if ev.Type == network.ResourceTypeDocument {
			e.documents[ev.RequestID] = true
		}
	case *network.EventResponseReceived:
		if ev.Type == network.ResourceTypeDocument && string(ev.FrameID) == string(e.frame) {
			e.status = int(ev.Response.Status)
		}
	case *page.EventJavascriptDialogOpening:
		e.errors = append(e.errors, fmt.Sprintf("a dialog of the browser, dismissed: %s %q", ev.Type, ev.Message))
		select {
		case e.dialogs <- struct{}{}:
		default:
		}
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeAssert {
			e.errors = append(e.errors, "console."+string(ev.Type)+": "+formatArgs(ev.Args))
		}
	case *runtime.EventExceptionThrown:
		e.errors = append(e.errors, formatException(ev.ExceptionDetails))
	case *log.EventEntryAdded:
		e.recordEntry(ev.Entry)
	}
}

func (e *events) setLoading(frame string, loading bool) {
	if frame == string(e.frame) {
		e.loading = loading
	}
}

// recordEntry records an error in the browser's log. Pages with a status of 400 and above
// are no errors, because tests may expect them.
func (e *events) recordEntry(en *log.Entry) {
	if en.Level != log.EntryLevelError || e.documents[en.NetworkRequestID] {
		return
	}
	e.errors = append(e.errors, strings.TrimSpace(string(en.Source)+": "+en.Text+" "+en.URL))
}

func (e *events) isLoading() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.loading
}

func (e *events) lastStatus() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status
}

func (e *events) expectError(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expected = append(e.expected, text)
}

// compareErrors returns the unexpected errors, and the expected ones that did not occur.
func (e *events) compareErrors() (wrong, missing []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, line := range e.errors {
		if !slices.ContainsFunc(e.expected, func(text string) bool { return strings.Contains(line, text) }) {
			wrong = append(wrong, line)
		}
	}
	for _, text := range e.expected {
		if !slices.ContainsFunc(e.errors, func(line string) bool { return strings.Contains(line, text) }) {
			missing = append(missing, text)
		}
	}
	return wrong, missing
}

// formatArgs writes the arguments of a console call in one line.
func formatArgs(args []*runtime.RemoteObject) string {
	var words []string
	for _, a := range args {
		word := a.Description
		if word == "" && json.Unmarshal(a.Value, &word) != nil {
			word = string(a.Value)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func formatException(d *runtime.ExceptionDetails) string {
	text := d.Text
	if d.Exception != nil && d.Exception.Description != "" {
		text += " " + d.Exception.Description
	}
	return fmt.Sprintf("exception: %s (%s line %d)", text, d.URL, d.LineNumber+1)
}
