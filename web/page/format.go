package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"checkoutlock/schemas"
	"checkoutlock/web/texts"
)

// How pages write dates, durations and numbers in the reader's language and time zone.

// Moment is a time as pages show it: for people, and for programs as RFC 3339.
type Moment struct{ Text, Machine string }

// When writes a date and a time of day.
func (r Reader) When(t time.Time) Moment {
	t = t.In(r.Zone)
	months := strings.Fields(r.Say(texts.Text{Code: "time.months"}))
	zone, _ := t.Zone()
	return Moment{Machine: t.Format(time.RFC3339), Text: r.Say(texts.Text{Code: "time.moment", Values: texts.Values{
		"day": strconv.Itoa(t.Day()), "month": months[t.Month()-1], "year": strconv.Itoa(t.Year()), "clock": t.Format("15:04:05"), "zone": zone,
	}})}
}

// when is the template function for a time.Time or a date of storage. What is no date stays as it is.
func (r Reader) when(date any) (Moment, error) {
	t, text, err := readDate(date)
	if err != nil || t.IsZero() {
		return Moment{Text: text, Machine: text}, err
	}
	return r.When(t), nil
}

// clock is the template function for the time of day of what when takes.
func (r Reader) clock(date any) (string, error) {
	t, text, err := readDate(date)
	if err != nil || t.IsZero() {
		return text, err
	}
	return t.In(r.Zone).Format("15:04"), nil
}

// readDate returns the time of a time.Time or of a date of storage; of a text that is no date, the
// zero time and the text.
func readDate(date any) (t time.Time, text string, err error) {
	switch date := date.(type) {
	case time.Time:
		return date, "", nil
	case string:
		if t, err := ParseDate(date); err == nil {
			return t, "", nil
		}
		return t, date, nil
	}
	return t, "", fmt.Errorf("%T is no date", date)
}

// ParseDate parses a date of storage.
func ParseDate(date string) (time.Time, error) {
	t, err := time.Parse(schemas.FolioTime, date)
	if err != nil {
		t, err = time.Parse(time.RFC3339Nano, date)
	}
	return t, err
}

// NoBreak keeps a number and its unit in one line.
const NoBreak = "\u00a0"

// Number writes a number with at most so many decimals.
func (r Reader) Number(n any, decimals int) string {
	return message.NewPrinter(language.Make(r.Language)).Sprint(number.Decimal(n, number.MaxFractionDigits(decimals)))
}

// Duration writes a measured duration, rounded for reading: 340 ms, 2.5 s, 3 min 20 s.
func (r Reader) Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d"+NoBreak+"ms", d.Milliseconds())
	case d < time.Minute:
		tenths, _ := strconv.ParseFloat(strconv.FormatFloat(d.Truncate(time.Millisecond).Seconds(), 'f', 1, 64), 64)
		return r.Number(tenths, 1) + NoBreak + "s"
	case d < time.Hour:
		return fmt.Sprintf("%d"+NoBreak+"min %d"+NoBreak+"s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d"+NoBreak+"h %d"+NoBreak+"min", int(d.Hours()), int(d.Minutes())%60)
}

// Felt writes a duration of the settings, without rounding: 250 ms, 3.04 s, 2 min 30 s.
func (r Reader) Felt(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + NoBreak + "ms"
	}
	var parts []string
	if minutes := d / time.Minute; minutes > 0 {
		parts = append(parts, fmt.Sprintf("%d"+NoBreak+"min", minutes))
	}
	if rest := d % time.Minute; rest > 0 {
		parts = append(parts, r.Number(rest.Seconds(), 3)+NoBreak+"s")
	}
	return strings.Join(parts, " ")
}

// ms is the template function for measured milliseconds, or a time.Duration. A nil pointer is "–".
func (r Reader) ms(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return r.Duration(time.Duration(n) * time.Millisecond), nil
	case int64:
		return r.Duration(time.Duration(n) * time.Millisecond), nil
	case *int:
		if n == nil {
			return "–", nil
		}
		return r.Duration(time.Duration(*n) * time.Millisecond), nil
	case time.Duration:
		return r.Duration(n), nil
	}
	return "", fmt.Errorf("%T is no duration", n)
}
