package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// kind is a set of roles, as Chromium's accessibility tree names them.
type kind struct {
	name  string // what a failure calls them
	roles []string
}

// Some roles are Chromium's own: no ARIA role exists for a summary or a date field.
func clickable() kind {
	return kind{"button, link or the like", []string{
		"button", "link", "checkbox", "radio", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option",
		"DisclosureTriangle", "DisclosureTriangleGrouped",
	}}
}

func fillable() kind {
	return kind{"field", []string{"textbox", "searchbox", "spinbutton", "combobox", "Date", "DateTime", "InputTime"}}
}

func selectable() kind { return kind{"list to choose from", []string{"combobox", "listbox"}} }

func control() kind {
	return kind{"control", slices.Concat(clickable().roles, fillable().roles, selectable().roles,
		[]string{"slider", "meter", "progressbar", "status", "img", "image"})}
}

func container() kind {
	return kind{"part", []string{
		"region", "group", "form", "dialog", "alertdialog", "table", "row", "list", "listitem", "article", "navigation",
		"main", "complementary", "banner", "contentinfo", "search", "tabpanel", "status", "alert", "radiogroup", "figure",
	}}
}

// Element is what a person, or a screen reader, is told about one control.
type Element struct {
	Role        string // such as "button", "spinbutton", "meter"
	Name        string
	Description string // what aria-describedby says: a hint, the message at a field
	Value       string // of fields and meters
	Checked     bool
	Expanded    bool
	Disabled    bool
	Invalid     bool

	node cdp.BackendNodeID
}

// Find waits until the page has exactly one control with the accessible name, and
// tells what it is like: a button, link, field, box to tick, meter, progress bar,
// image or live status.
func (p *Page) Find(name string) Element {
	p.t.Helper()
	return p.find(control(), name)
}

// FindField is Find for a field to fill in or a list to choose from, also where a
// link or button has its name, as in a message that leads to the field.
func (p *Page) FindField(label string) Element {
	p.t.Helper()
	return p.find(kind{"field", slices.Concat(fillable().roles, selectable().roles)}, label)
}

func (p *Page) find(k kind, name string) Element {
	p.t.Helper()
	var found Element
	p.until(fmt.Sprintf("finding the %s %q", k.name, name), func(ctx context.Context) (err error) {
		found, err = p.one(ctx, k, name)
		return err
	})
	return found
}

// one returns the only element of that kind with that name.
func (p *Page) one(ctx context.Context, k kind, name string) (Element, error) {
	root, err := p.root(ctx)
	if err != nil {
		return Element{}, err
	}
	found, err := query(ctx, root, k, name)
	if err != nil {
		return Element{}, err
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		all, err := query(ctx, root, k, "")
		return Element{}, errors.Join(fmt.Errorf("no %s has that name; there are: %s", k.name, names(all)), err)
	}
	return Element{}, fmt.Errorf("%d of them: %s; In says which part of the page is meant", len(found), names(found))
}

func names(elements []Element) string {
	if len(elements) == 0 {
		return "none"
	}
	words := make([]string, len(elements))
	for i, e := range elements {
		words[i] = fmt.Sprintf("%s %q", e.Role, e.Name)
	}
	return strings.Join(words, ", ")
}

// query asks the accessibility tree below root, which leaves out what is hidden.
// An empty name means any. Chromium itself would compare names with all their
// white space, such as that which a sign leaves that is hidden from screen readers.
func query(ctx context.Context, root runtime.RemoteObjectID, k kind, name string) ([]Element, error) {
	res, err := chromedp.Call(ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: root})
	if err != nil {
		return nil, err
	}
	name = plain(name)
	var found []Element
	for _, n := range res.Nodes {
		if n.Ignored || n.BackendDOMNodeID == 0 || !slices.Contains(k.roles, word(n.Role)) {
			continue
		}
		if e := element(n); name == "" || e.Name == name {
			found = append(found, e)
		}
	}
	return found, nil
}

func element(n *accessibility.Node) Element {
	e := Element{
		Role: word(n.Role), Name: plain(word(n.Name)), Description: word(n.Description), Value: word(n.Value),
		node: n.BackendDOMNodeID,
	}
	for _, prop := range n.Properties {
		set := word(prop.Value)
		switch prop.Name {
		case accessibility.PropertyNameChecked, accessibility.PropertyNamePressed:
			e.Checked = e.Checked || set == "true"
		case accessibility.PropertyNameExpanded:
			e.Expanded = set == "true"
		case accessibility.PropertyNameDisabled:
			e.Disabled = set == "true"
		case accessibility.PropertyNameInvalid:
			e.Invalid = set != "false"
		default:
		}
	}
	return e
}

// word is a value of the tree, a string, number or truth value, as text.
func word(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var s string
	if json.Unmarshal(v.Value, &s) == nil {
		return s
	}
	return string(v.Value)
}

// root returns the page's document, or the one part that In names.
func (p *Page) root(ctx context.Context) (runtime.RemoteObjectID, error) {
	doc, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject]("document"))
	if err != nil {
		return "", err
	}
	if p.part == "" {
		return doc.ObjectID, nil
	}
	parts, err := query(ctx, doc.ObjectID, container(), p.part)
	if err != nil {
		return "", err
	}
	switch len(parts) {
	case 1:
		return object(ctx, parts[0].node)
	case 0:
		return partWith(ctx, doc.ObjectID, p.part)
	}
	return "", fmt.Errorf("%d parts of the page are called %q: %s", len(parts), p.part, names(parts))
}

// partWith returns the only row or list item with the text.
func partWith(ctx context.Context, doc runtime.RemoteObjectID, text string) (runtime.RemoteObjectID, error) {
	const find = `function (text) {
		const plain = e => e.innerText.trim().replace(/\s+/g, " ");
		const with_ = [...this.querySelectorAll("tr, li, [role=row], [role=listitem]")].filter(e => plain(e).includes(text));
		const inner = with_.filter(e => !with_.some(other => other !== e && e.contains(other)));
		return inner.length === 1 ? inner[0] : inner.length;
	}`
	res, err := chromedp.Run(ctx, chromedp.CallFunctionOn[*runtime.RemoteObject](find, on(doc), plain(text)))
	if err != nil {
		return "", err
	}
	if res.ObjectID == "" {
		return "", fmt.Errorf("no part of the page is called %q, and %s rows or list items have that text", text, res.Value)
	}
	return res.ObjectID, nil
}

// object returns the page's own object for a node of the tree.
func object(ctx context.Context, node cdp.BackendNodeID) (runtime.RemoteObjectID, error) {
	res, err := chromedp.Call(ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node})
	if err != nil {
		return "", err
	}
	return res.Object.ObjectID, nil
}

// on makes a function be called on the object.
func on(id runtime.RemoteObjectID) chromedp.CallOption {
	return func(p *runtime.CallFunctionOnParams) { p.ObjectID = id }
}

// onObject calls the function on the object and returns its answer.
func onObject[T any](ctx context.Context, id runtime.RemoteObjectID, function string, args ...any) (T, error) {
	return chromedp.Run(ctx, chromedp.CallFunctionOn[T](function, on(id), args...))
}

// onNode calls the function on a node of the tree.
func onNode[T any](ctx context.Context, node cdp.BackendNodeID, function string, args ...any) (T, error) {
	id, err := object(ctx, node)
	if err != nil {
		var zero T
		return zero, err
	}
	return onObject[T](ctx, id, function, args...)
}
