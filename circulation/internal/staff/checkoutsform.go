package staff

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
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
		f.Outcome.Wrong = fmt.Sprintf("There is no outcome %s; choose one from the list.", fault.Shown(f.Outcome.Value))
	}
	from, _ := readLocal(&f.From)
	_, until := readLocal(&f.Until)
	if !from.IsZero() && !until.IsZero() && until.Before(from) {
		f.Until.Wrong = "This is before the time in From, so nothing can lie between them."
	}
	filter := schemas.HistoryFilter{UserBarcode: f.Patron.Value, ItemBarcode: f.Item.Value, Outcome: f.Outcome.Value}
	if !from.IsZero() {
		filter.From = from.Format(schemas.FolioTime)
	}
	if !until.IsZero() {
		filter.Until = until.Format(schemas.FolioTime)
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

// readLocal returns the first and the last millisecond that the typed date and time
// stands for in the service's time zone; zero when there is none.
func readLocal(f *field) (first, last time.Time) {
	if f.Value == "" {
		return time.Time{}, time.Time{}
	}
	first, last, ok := localSpan(f.Value, time.Local)
	if !ok {
		f.Wrong = fmt.Sprintf("%s is no date and time; write it as in 2026-08-22T14:03.", fault.Shown(f.Value))
		return time.Time{}, time.Time{}
	}
	return first, last
}
