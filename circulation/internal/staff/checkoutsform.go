package staff

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"checkoutlock/schemas"
)

// checkOutsForm is what people search past check-outs by, as it was typed.
type checkOutsForm struct {
	Patron, Item, From, Until, Outcome field
}

func (f checkOutsForm) problems() []field {
	return problems(f.Patron, f.Item, f.Outcome, f.From, f.Until)
}

// readCheckOutsForm reads the form, and the filter that it means unless something in
// it is wrong.
func readCheckOutsForm(q url.Values) (checkOutsForm, schemas.HistoryFilter) {
	zone := zoneName(time.Local, time.Now().Year())
	f := checkOutsForm{
		Patron:  barcodeField(q, "patron", "Patron's barcode"),
		Item:    barcodeField(q, "item", "Item's barcode"),
		Outcome: field{Name: "outcome", Label: "Outcome", Value: strings.TrimSpace(q.Get("outcome"))},
		From:    field{Name: "from", Label: "From (" + zone + ")", Type: "datetime-local", Value: strings.TrimSpace(q.Get("from"))},
		Until:   field{Name: "until", Label: "Until (" + zone + ")", Type: "datetime-local", Value: strings.TrimSpace(q.Get("until"))},
	}
	known := func(o outcome) bool { return o.Name == f.Outcome.Value }
	if f.Outcome.Value != "" && !slices.ContainsFunc(outcomes, known) {
		f.Outcome.Wrong = fmt.Sprintf("There is no outcome %s; choose one from the list.", schemas.Shown(f.Outcome.Value))
	}
	from, _ := readLocal(&f.From)
	until, precision := readLocal(&f.Until)
	if !from.IsZero() && !until.IsZero() && until.Before(from) {
		f.Until.Wrong = "This is before the time in From, so nothing can lie between them."
	}
	filter := schemas.HistoryFilter{UserBarcode: f.Patron.Value, ItemBarcode: f.Item.Value, Outcome: f.Outcome.Value}
	if !from.IsZero() {
		filter.From = from.Format(schemas.FolioTime)
	}
	if !until.IsZero() { // to the end of the minute or second that was typed
		filter.Until = until.Add(precision - time.Millisecond).Format(schemas.FolioTime)
	}
	return f, filter
}

// zoneName names a time zone all year round: CET/CEST, say, or UTC.
func zoneName(zone *time.Location, year int) string {
	january := time.Date(year, time.January, 1, 0, 0, 0, 0, zone).Format("MST")
	july := time.Date(year, time.July, 1, 0, 0, 0, 0, zone).Format("MST")
	if january == july {
		return january
	}
	return january + "/" + july
}

func barcodeField(q url.Values, name, label string) field {
	f := field{Name: name, Label: label, Value: strings.TrimSpace(q.Get(name))}
	switch n := utf8.RuneCountInString(f.Value); {
	case n > schemas.MaxHistoryText:
		f.Wrong = fmt.Sprintf("The barcode has %d characters; at most %d are possible.", n, schemas.MaxHistoryText)
	case !utf8.ValidString(f.Value) || strings.ContainsRune(f.Value, 0):
		f.Wrong = "The barcode has characters that no barcode can have."
	}
	return f
}

// readLocal reads what browsers send for a date and time, which is in the service's
// time zone, and how precise it is.
func readLocal(f *field) (time.Time, time.Duration) {
	if f.Value == "" {
		return time.Time{}, 0
	}
	for _, form := range []struct {
		layout    string
		precision time.Duration
	}{{"2006-01-02T15:04", time.Minute}, {"2006-01-02T15:04:05", time.Second}} {
		if t, err := time.ParseInLocation(form.layout, f.Value, time.Local); err == nil && t.UTC().Year() >= 1 && t.Year() <= 9999 {
			return t.Truncate(time.Second), form.precision
		}
	}
	f.Wrong = fmt.Sprintf("%s is no date and time; write it as in 2026-08-22T14:03.", schemas.Shown(f.Value))
	return time.Time{}, 0
}
