package staff

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/redact"
)

// formats are what templates write values with.
func formats() template.FuncMap {
	return template.FuncMap{
		"when":   when,
		"ms":     milliseconds,
		"exact":  exact,
		"felt":   felt,
		"mask":   redact.Mask,
		"short":  short,
		"source": sourceName,
		"plural": plural,

		"maxReason": func() int {
			return schemas.MaxChangeReason
		},
	}
}

// moment is a time as pages show it: for people in the service's own time zone
// (the variable TZ), for programs as RFC 3339.
type moment struct{ Text, Machine string }

// when reads a date of storage. Dates that cannot be read are shown as they are.
func when(date string) moment {
	t, err := localTime(date)
	if err != nil {
		return moment{Text: date, Machine: date}
	}
	return moment{Text: t.Format("2 Jan 2006, 15:04:05 MST"), Machine: t.Format(time.RFC3339)}
}

// localTime reads a date of storage, in the service's own time zone.
func localTime(date string) (time.Time, error) {
	t, err := time.Parse(schemas.FolioTime, date)
	if err != nil {
		t, err = time.Parse(time.RFC3339Nano, date)
	}
	return t.Local(), err
}

// nbsp is a blank at which no line ends: between a number and its unit.
const nbsp = "\u00a0"

// exact writes a time that somebody set as it is typed.
func exact(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10) + nbsp + "ms"
}

// felt writes such a time as what it is for people, to the millisecond too: 250 ms,
// 3.04 s, 2 min 30 s.
func felt(d time.Duration) string {
	if d < time.Second {
		return exact(d)
	}
	var parts []string
	if minutes := d / time.Minute; minutes > 0 {
		parts = append(parts, fmt.Sprintf("%d"+nbsp+"min", minutes))
	}
	if rest := d % time.Minute; rest > 0 {
		parts = append(parts, strconv.FormatFloat(rest.Seconds(), 'f', -1, 64)+nbsp+"s")
	}
	return strings.Join(parts, " ")
}

// milliseconds writes a duration that was measured as a person reads it: 340 ms,
// 2.5 s, 3 min 20 s.
func milliseconds(n any) string {
	var ms int64
	switch n := n.(type) {
	case int:
		ms = int64(n)
	case int64:
		ms = n
	case *int:
		if n == nil {
			return "–"
		}
		ms = int64(*n)
	case time.Duration:
		ms = n.Milliseconds()
	}
	switch d := time.Duration(ms) * time.Millisecond; {
	case ms < 1000:
		return fmt.Sprintf("%d"+nbsp+"ms", ms)
	case d < time.Minute:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + nbsp + "s"
	case d < time.Hour:
		return fmt.Sprintf("%d"+nbsp+"min %d"+nbsp+"s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d"+nbsp+"h %d"+nbsp+"min", int(d.Hours()), int(d.Minutes())%60)
	}
}

// short is the beginning of an id, enough to find it again with the eye.
func short(id string) string {
	if len(id) <= 8 {
		return id
	}
	return id[:8]
}

// sourceName says for people where a setting comes from.
func sourceName(s settings.Source) string {
	if s == settings.FromTenant {
		return "set for this library"
	}
	return "the service's own setting"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
