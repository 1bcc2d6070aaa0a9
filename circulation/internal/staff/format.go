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
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// formats are the functions with which templates write values.
func formats() template.FuncMap {
	return template.FuncMap{
		"mask":   redact.Mask,
		"short":  shortenID,
		"source": nameSource,
		"cause":  nameCause,
		"plural": plural,

		"notLent": func(m schemas.FigureMinute) int {
			return m.CheckOuts - m.Lent
		},
		"maxReason": func() int {
			return schemas.MaxChangeReason
		},
	}
}

// formatDate writes a date of storage for programs; one that cannot be parsed stays as it is.
func formatDate(date string) page.Moment {
	t, err := parseDate(date)
	if err != nil {
		return page.Moment{Text: date, Machine: date}
	}
	return page.Moment{Machine: t.Format(time.RFC3339)}
}

// parseDate parses a date of storage, in the service's time zone.
func parseDate(date string) (time.Time, error) {
	t, err := time.Parse(schemas.FolioTime, date)
	if err != nil {
		t, err = time.Parse(time.RFC3339Nano, date)
	}
	return t.Local(), err
}

// nbsp keeps a number and its unit in one line.
const nbsp = page.NoBreak

// formatWhole writes a duration of the settings for reading, without rounding: 250 ms,
// 3.04 s, 2 min 30 s.
func formatWhole(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + nbsp + "ms"
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

// milliseconds writes a measured duration, rounded for reading: 340 ms, 2.5 s,
// 3 min 20 s.
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
	return page.Reader{Language: texts.English}.Duration(time.Duration(ms) * time.Millisecond)
}

// shortenID returns the beginning of an id, which is enough to recognise it.
func shortenID(id string) string { return id[:min(len(id), 8)] }

// nameSource names the origin of a setting.
func nameSource(s settings.Source) string {
	if s == settings.FromTenant {
		return "set by your library"
	}
	return byService
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
