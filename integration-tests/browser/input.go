package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// maxTabs is the largest number of presses in TabTo.
const maxTabs = 200

// Fill replaces the content of the only field with that label, as if the value was typed.
// Dates and times have HTML's form: 2026-03-01, 14:03, 2026-03-01T14:03.
func (p *Page) Fill(label, value string) {
	p.t.Helper()
	p.waitUntil(fmt.Sprintf("filling in %q", label), func(ctx context.Context) error {
		e, err := p.findOne(ctx, fillable(), label)
		if err != nil {
			return err
		}
		if e.Disabled {
			return errors.New("the field is disabled")
		}
		if err := fillField(ctx, e, value); err != nil {
			return err
		}
		has, err := callOnNode[string](ctx, e.node, `function () { return this.value }`)
		if err == nil && has != value {
			err = fmt.Errorf("it took %q for %q", has, value)
		}
		return err
	})
	p.waitForLoad()
}

func fillField(ctx context.Context, e Element, value string) error {
	if _, err := chromedp.Call(ctx, dom.Focus, dom.FocusParams{BackendNodeID: e.node}); err != nil {
		return err
	}
	if e.Role == "Date" || e.Role == "DateTime" || e.Role == "InputTime" { // typing into them depends on the locale
		_, err := callOnNode[chromedp.Void](ctx, e.node, `function (v) { this.value = v; `+changed+` }`, value)
		return err
	}
	if _, err := callOnNode[chromedp.Void](ctx, e.node, `function () { this.select() }`); err != nil {
		return err
	}
	if value == "" {
		return chromedp.Do(ctx, chromedp.KeyEvent(kb.Delete))
	}
	_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: value})
	return err
}

// changed sends the events of a change by the user to the page's scripts.
const changed = `for (const type of ["input", "change"]) this.dispatchEvent(new Event(type, {bubbles: true}));`

// Select chooses an option by text or value from the only list with that label.
func (p *Page) Select(label, option string) {
	p.t.Helper()
	const choose = `function (option) {
		const plain = s => s.trim().replace(/\s+/g, " ");
		const all = [...this.options].filter(o => !o.disabled);
		const found = all.find(o => plain(o.text) === option) || all.find(o => o.value === option);
		if (!found) return all.map(o => plain(o.text)).join(", ");
		if (!found.selected) { found.selected = true; ` + changed + ` }
		return "";
	}`
	p.waitUntil(fmt.Sprintf("choosing %q of %q", option, label), func(ctx context.Context) error {
		e, err := p.findOne(ctx, selectable(), label)
		if err != nil {
			return err
		}
		if e.Disabled {
			return errors.New("the list is disabled")
		}
		if _, err := chromedp.Call(ctx, dom.Focus, dom.FocusParams{BackendNodeID: e.node}); err != nil {
			return err
		}
		others, err := callOnNode[string](ctx, e.node, choose, foldSpace(option))
		if err == nil && others != "" {
			err = fmt.Errorf("there is no such option; there are: %s", others)
		}
		return err
	})
	p.waitForLoad()
}

// Press presses keys, one after the other. A key is a single character or a name such as
// "Tab", "Shift+Tab", "Enter", "Space", "Escape" or "ArrowDown". After each key it waits for
// the page that the key opens.
func (p *Page) Press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		char, shift, err := parseKey(key)
		if err != nil {
			p.t.Fatal(err)
		}
		var opts []chromedp.KeyOption
		if shift {
			opts = append(opts, chromedp.KeyModifiers(chromedp.ModifierShift))
		}
		p.runVoid("pressing "+key, chromedp.KeyEvent(char, opts...))
		p.waitForLoad()
	}
}

// Type types the text, one key for each character, into the focused element.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.runVoid(fmt.Sprintf("typing %q", text), chromedp.KeyEvent(text))
	p.waitForLoad()
}

func parseKey(key string) (char string, shift bool, err error) {
	name, shift := strings.CutPrefix(key, "Shift+")
	named := map[string]string{
		"Tab": kb.Tab, "Enter": kb.Enter, "Space": " ", "Escape": kb.Escape, "Backspace": kb.Backspace, "Delete": kb.Delete,
		"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
		"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
	}
	if char, ok := named[name]; ok {
		return char, shift, nil
	}
	if utf8.RuneCountInString(name) != 1 {
		return "", false, fmt.Errorf("no key is called %q", key)
	}
	return name, shift, nil
}

// TabTo presses Tab until the element with the accessible name has the focus.
func (p *Page) TabTo(name string) {
	p.t.Helper()
	var passed []string
	for range maxTabs {
		p.Press("Tab")
		focused := p.Focused()
		if focused == foldSpace(name) {
			return
		}
		if len(passed) > 1 && focused == passed[0] && focused != "" { // all elements had the focus
			break
		}
		passed = append(passed, focused)
	}
	p.failTest("pressing Tab never focuses %q, only: %q", name, passed)
}

// FocusOn waits until the element with the accessible name has the focus.
func (p *Page) FocusOn(name string) {
	p.t.Helper()
	p.waitUntil(fmt.Sprintf("seeing the focus on %q", name), func(ctx context.Context) error {
		focused, err := chromedp.Run(ctx, readFocused)
		if err == nil && focused != foldSpace(name) {
			err = fmt.Errorf("it is on %q", focused)
		}
		return err
	})
}

// Focused returns the accessible name of the focused element, empty without one.
func (p *Page) Focused() string {
	p.t.Helper()
	return runAction(p, "reading the focus", readFocused)
}

func readFocused(ctx context.Context, _ *chromedp.Target) (string, error) {
	active, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject](
		`document.activeElement === document.body ? null : document.activeElement`))
	if err != nil || active.ObjectID == "" {
		return "", err
	}
	fetchRelatives := false
	res, err := chromedp.Call(ctx, accessibility.GetPartialAXTree,
		accessibility.GetPartialAXTreeParams{ObjectID: active.ObjectID, FetchRelatives: &fetchRelatives})
	if err != nil || len(res.Nodes) == 0 {
		return "", err
	}
	return foldSpace(valueText(res.Nodes[0].Name)), nil
}
