package staff

import (
	"html/template"
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
		"mask":  redact.Mask,
		"short": shortenID,
		"notLent": func(m schemas.FigureMinute) int {
			return m.CheckOuts - m.Lent
		},
		"maxReason": func() int {
			return schemas.MaxChangeReason
		},
	}
}

// formatDate writes a date of storage for programs; one that cannot be parsed stays as it is.
func (v *visit) formatDate(date string) string {
	t, err := page.ParseDate(date)
	if err != nil {
		return date
	}
	return t.In(v.reader.Zone).Format(time.RFC3339)
}

// shortenID returns the beginning of an id, which is enough to recognise it.
func shortenID(id string) string { return id[:min(len(id), 8)] }

// nameSource names the origin of a setting.
func nameSource(s settings.Source) texts.Code {
	if s == settings.FromTenant {
		return "settings.byLibrary"
	}
	return byService
}

// listMark is between the times of a list. Where a comma is in numbers, it is a semicolon.
func listMark(r page.Reader) string {
	if r.Language == texts.English || r.Language == texts.Pseudo {
		return ", "
	}
	return "; "
}
