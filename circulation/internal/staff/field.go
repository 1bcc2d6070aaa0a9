package staff

// field is a field of a form, as the part "field" writes it. Its name is its id in
// the page too.
type field struct {
	Name, Label, Hint string // a hint may have several lines
	Type              string // of an input; empty is text
	Rows              int    // makes it a textarea
	Required          bool
	Value             string // as it was typed, also when it is wrong
	Wrong             string // what is wrong with it, in words; empty for nothing
}

// problems are the fields that are wrong. The part "problems" leads to them from
// above the form.
func problems(fields ...field) []field {
	var wrong []field
	for _, f := range fields {
		if f.Wrong != "" {
			wrong = append(wrong, f)
		}
	}
	return wrong
}
