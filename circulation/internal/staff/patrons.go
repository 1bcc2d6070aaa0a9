package staff

import "net/url"

// Lists mask their patrons until somebody asks to see them, by the address.
const (
	patronsParam = "patrons"
	patronsYes   = "shown"
)

// patronsAsked tells whether somebody asked.
func patronsAsked(v *visit) bool { return v.QueryParam(patronsParam) == patronsYes }

// patronsShown tells whether somebody asked, and the path of the same page with the
// opposite.
func patronsShown(v *visit, page string) (shown bool, toggle string) {
	q := v.Request().URL.Query()
	q.Del("done")
	if shown = patronsAsked(v); shown {
		q.Del(patronsParam)
	} else {
		q.Set(patronsParam, patronsYes)
	}
	return shown, v.path(page) + "?" + q.Encode()
}

// pathWithPatrons is the path of a page that shows patrons if this one does.
func (v *visit) pathWithPatrons(page string) string {
	if !patronsAsked(v) {
		return v.path(page)
	}
	return v.path(page) + "?" + url.Values{patronsParam: {patronsYes}}.Encode()
}
