package staff

import (
	"net/http"
	"net/url"
	"strconv"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
)

// Addresses of pages, and the parameters that all lists share.

// Lists mask their patrons unless the address has patrons=shown.
const (
	patronsParam = "patrons"
	patronsShown = "shown"
)

// path is the address of one of the tenant's pages.
func (v *visit) path(to string) string {
	return page.RelativePath(v.c, "/staff/"+v.tenant.String()+to)
}

// pathOf is the address of a page with the query of this request, changed by edit.
func (v *visit) pathOf(page string, edit func(url.Values)) string {
	q := v.c.Request().URL.Query()
	q.Del("done")
	q.Del("language") // the choice is kept
	edit(q)
	if len(q) == 0 {
		return v.path(page)
	}
	return v.path(page) + "?" + q.Encode()
}

// showsPatrons reports whether the address asks for the patrons.
func (v *visit) showsPatrons() bool { return web.QueryOf(v.c).Text(patronsParam) == patronsShown }

// toggleShown is the address of the same page with the patrons masked if they are
// shown now, and shown if they are masked.
func (v *visit) toggleShown(page string) string {
	return v.pathOf(page, func(q url.Values) {
		if v.showsPatrons() {
			q.Del(patronsParam)
		} else {
			q.Set(patronsParam, patronsShown)
		}
	})
}

// keepShown is the address of a page that shows patrons if this one does.
func (v *visit) keepShown(page string) string {
	if q := v.keepQuery(url.Values{}); q != "" {
		return v.path(page) + "?" + q
	}
	return v.path(page)
}

// keepQuery encodes a query that shows patrons if this request's does.
func (v *visit) keepQuery(q url.Values) string {
	if v.showsPatrons() {
		q.Set(patronsParam, patronsShown)
	}
	return q.Encode()
}

// redirectDone redirects to a page after a change; note is a key of notes.
func (v *visit) redirectDone(page, note string) error {
	return v.c.Redirect(http.StatusSeeOther, v.path(page)+"?"+v.keepQuery(url.Values{"done": {note}}))
}

// pageParameters are those of all pages.
var pageParameters = []web.Parameter{
	{Name: "done", Meaning: "a key of notes"}, {Name: patronsParam, Meaning: "whether to show patrons"},
}

// refuseParameter refuses what no page links to; what people type is a problem of its
// field. An empty parameter counts as absent.
func refuseParameter(p web.Parameter, value string) error {
	switch {
	case value == "":
		return nil
	case p.Type == web.Integer:
		return fault.New(fault.Invalid, "%s is %s, allowed are %d to %d", p.Name, fault.Shown(value), p.Least, p.Most)
	}
	return fault.New(fault.Malformed, "Locks are held or expired, not %s", fault.Shown(value))
}

// linkNeighbours returns the addresses of the pages before and after, with the same
// filters; empty for none.
func (v *visit) linkNeighbours(page string, offset, size int, more bool) (newer, older string) {
	link := func(offset int) string {
		return v.pathOf(page, func(q url.Values) { q.Set("offset", strconv.Itoa(offset)) })
	}
	if offset > 0 {
		newer = link(max(0, offset-size))
	}
	if more && offset+size <= schemas.MaxHistoryOffset {
		older = link(offset + size)
	}
	return newer, older
}
