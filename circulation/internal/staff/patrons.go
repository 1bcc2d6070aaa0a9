package staff

// Lists mask their patrons until somebody asks to see them, by the address.
const (
	patronsParam = "patrons"
	patronsYes   = "shown"
)

// patronsShown tells whether somebody asked, and the path of the same page with the
// opposite.
func patronsShown(v *visit, page string) (shown bool, toggle string) {
	q := v.Request().URL.Query()
	q.Del("done")
	if shown = q.Get(patronsParam) == patronsYes; shown {
		q.Del(patronsParam)
	} else {
		q.Set(patronsParam, patronsYes)
	}
	return shown, v.path(page) + "?" + q.Encode()
}
