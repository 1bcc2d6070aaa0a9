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

// kind is a set of roles of Chromium's accessibility tree.
type kind struct {
	name  string // for failures
	roles []string
}

// clickable includes roles of Chromium's own, because ARIA has none for a summary.
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

// Element is one control as a screen reader presents it.
type Element struct {
	Role        string // such as "button", "spinbutton", "meter"
	Name        string
	Description string // the text of aria-describedby, such as a hint or an error message
	Value       string // of fields and meters
	Checked     bool
	Expanded    bool
	Disabled    bool
	Invalid     bool

	node cdp.BackendNodeID
}

// Find waits until the page has exactly one control with the accessible name, and returns
// it. A control is a button, link, field, checkbox, meter, progress bar, image or live status.
func (p *Page) Find(name string) Element {
	p.t.Helper()
	return p.find(control(), name)
}

// FindField is Find for fields and lists only. A link or button may have the same name, such
// as a link in an error message.
func (p *Page) FindField(label string) Element {
	p.t.Helper()
	return p.find(kind{"field", slices.Concat(fillable().roles, selectable().roles)}, label)
}

func (p *Page) find(k kind, name string) Element {
	p.t.Helper()
	var found Element
	p.waitUntil(fmt.Sprintf("finding the %s %q", k.name, name), func(ctx context.Context) (err error) {
		found, err = p.findOne(ctx, k, name)
		return err
	})
	return found
}

// findOne returns the only element of that kind with that name.
func (p *Page) findOne(ctx context.Context, k kind, name string) (Element, error) {
	root, err := p.findRoot(ctx)
	if err != nil {
		return Element{}, err
	}
	found, err := queryTree(ctx, root, k, name)
	if err != nil {
		return Element{}, err
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		all, err := queryTree(ctx, root, k, "")
		return Element{}, errors.Join(fmt.Errorf("no %s has that name; there are: %s", k.name, listNames(all)), err)
	}
	return Element{}, fmt.Errorf("%d of them: %s; use In to select a part of the page", len(found), listNames(found))
}

func listNames(elements []Element) string {
	if len(elements) == 0 {
		return "none"
	}
	words := make([]string, len(elements))
	for i, e := range elements {
		words[i] = fmt.Sprintf("%s %q", e.Role, e.Name)
	}
	return strings.Join(words, ", ")
}

// queryTree searches the accessibility tree below root, which has no hidden elements. An
// empty name means any. It compares names itself, because Chromium does not fold white
// space.
func queryTree(ctx context.Context, root runtime.RemoteObjectID, k kind, name string) ([]Element, error) {
	res, err := chromedp.Call(ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: root})
	if err != nil {
		return nil, err
	}
	name = foldSpace(name)
	var found []Element
	for _, n := range res.Nodes {
		if n.Ignored || n.BackendDOMNodeID == 0 || !slices.Contains(k.roles, valueText(n.Role)) {
			continue
		}
		if e := newElement(n); name == "" || e.Name == name {
			found = append(found, e)
		}
	}
	return found, nil
}

func newElement(n *accessibility.Node) Element {
	e := Element{
		Role: valueText(n.Role), Name: foldSpace(valueText(n.Name)), Description: valueText(n.Description), Value: valueText(n.Value),
		node: n.BackendDOMNodeID,
	}
	for _, prop := range n.Properties {
		set := valueText(prop.Value)
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

// valueText returns a string, number or boolean of the tree as text.
func valueText(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var s string
	if json.Unmarshal(v.Value, &s) == nil {
		return s
	}
	return string(v.Value)
}

// findRoot returns the page's document, or the part that In names.
func (p *Page) findRoot(ctx context.Context) (runtime.RemoteObjectID, error) {
	doc, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject]("document"))
	if err != nil {
		return "", err
	}
	if p.part == "" {
		return doc.ObjectID, nil
	}
	parts, err := queryTree(ctx, doc.ObjectID, container(), p.part)
	if err != nil {
		return "", err
	}
	switch len(parts) {
	case 1:
		return resolveNode(ctx, parts[0].node)
	case 0:
		return findRow(ctx, doc.ObjectID, p.part)
	}
	return "", fmt.Errorf("%d parts of the page are called %q: %s", len(parts), p.part, listNames(parts))
}

// findRow returns the only row or list item with the text.
func findRow(ctx context.Context, doc runtime.RemoteObjectID, text string) (runtime.RemoteObjectID, error) {
	const find = `function (text) {
		const plain = e => e.innerText.trim().replace(/\s+/g, " ");
		const with_ = [...this.querySelectorAll("tr, li, [role=row], [role=listitem]")].filter(e => plain(e).includes(text));
		const inner = with_.filter(e => !with_.some(other => other !== e && e.contains(other)));
		return inner.length === 1 ? inner[0] : inner.length;
	}`
	res, err := chromedp.Run(ctx, chromedp.CallFunctionOn[*runtime.RemoteObject](find, withReceiver(doc), foldSpace(text)))
	if err != nil {
		return "", err
	}
	if res.ObjectID == "" {
		return "", fmt.Errorf("no part of the page is called %q, and %s rows or list items have that text", text, res.Value)
	}
	return res.ObjectID, nil
}

// resolveNode returns the page's object for a node of the tree.
func resolveNode(ctx context.Context, node cdp.BackendNodeID) (runtime.RemoteObjectID, error) {
	res, err := chromedp.Call(ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node})
	if err != nil {
		return "", err
	}
	return res.Object.ObjectID, nil
}

// withReceiver calls a function with the object as this.
func withReceiver(id runtime.RemoteObjectID) chromedp.CallOption {
	return func(p *runtime.CallFunctionOnParams) { p.ObjectID = id }
}

// callOnObject calls the function on the object and returns its result.
func callOnObject[T any](ctx context.Context, id runtime.RemoteObjectID, function string, args ...any) (T, error) {
	return chromedp.Run(ctx, chromedp.CallFunctionOn[T](function, withReceiver(id), args...))
}

// callOnNode calls the function on a node of the tree.
func callOnNode[T any](ctx context.Context, node cdp.BackendNodeID, function string, args ...any) (T, error) {
	id, err := resolveNode(ctx, node)
	if err != nil {
		var zero T
		return zero, err
	}
	return callOnObject[T](ctx, id, function, args...)
}
