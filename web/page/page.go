// Package page is what the pages of the services share: their look and frame, headers,
// embedded files, templates, the CSRF check and error pages.
package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// contentSecurityPolicy lets a page load and call this service only, and forbids inline
// scripts and styles.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// SetHeaders sets the headers of every page.
func SetHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	// The address of a search has a barcode, which no other site may get. The policy
	// no-referrer would make a form's Origin null. Over plain http browsers send no
	// Sec-Fetch-Site, so there the Origin alone proves where a form comes from.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// Frame is the data of layout.html.
type Frame struct {
	Brand   string // what the service is, above every page
	Title   string
	Tenant  string
	Who     string // empty without a sign-in, or if the name is not known
	Warning string
	Note    string
	SignOut string // the path that ends the visitor's session; empty without one
	CSRF    string
	Results bool // the page has an element #results, to which the skip link leads
	Nav     []Link
	Script  string // a path; empty for none
	Style   string // paths
	Icon    string
	Body    any
}

// Link is a place in the navigation.
type Link struct {
	Path, Text string
	Current    bool
}

// Reason is the field for the reason of a change, for the template "reason".
type Reason struct {
	Value string // as it was typed
	Wrong string // what is wrong with it, in words; empty for nothing
}

// Problem is an error as error.html shows it.
type Problem struct {
	Heading   string
	Text      string
	Advice    string
	RequestID string // finds the log lines
	Back      string // a path
}

// SignIn is the form of sign-in.html.
type SignIn struct {
	To    string // the address that was asked for
	Name  string // as it was typed
	Wrong string // why that was refused; empty for nothing
}

// Notice is a text with one link, for notice.html.
type Notice struct{ Text, Link, LinkText string }

// DescribeProblem describes an error of a request. Back is the first page.
func DescribeProblem(c echo.Context, err error, back string) Problem {
	f := web.ToFault(err)
	shown := Problem{
		Heading: cmp.Or(headings[fault.Status(f.Code)], "That cannot be done"), Text: f.Msg,
		RequestID: okapi.FromContext(c.Request().Context()).RequestID, Back: back,
	}
	if _, known := errors.AsType[*fault.Error](err); f.Code == fault.Internal && !known {
		shown.Text = "The service could not make this page." // the log has the cause
	}
	return shown
}

// headings of error pages; any other status is "That cannot be done".
var headings = map[int]string{
	http.StatusUnauthorized:        "Please sign in",
	http.StatusForbidden:           "You may not do that",
	http.StatusNotFound:            "There is nothing here",
	http.StatusConflict:            "Another change came first",
	http.StatusBadGateway:          "Not available right now",
	http.StatusGatewayTimeout:      "Not available right now",
	http.StatusServiceUnavailable:  "Not available right now",
	http.StatusTooManyRequests:     "Not available right now",
	http.StatusInternalServerError: "Something went wrong",
}

// Moment is a time as pages show it: for people in the service's time zone (the variable
// TZ), for programs as RFC 3339.
type Moment struct{ Text, Machine string }

// FormatTime writes a time.
func FormatTime(t time.Time) Moment {
	t = t.Local()
	return Moment{Text: t.Format("2 Jan 2006, 15:04:05 MST"), Machine: t.Format(time.RFC3339)}
}

// NoBreak keeps a number and its unit in one line.
const NoBreak = "\u00a0"

// FormatDuration writes a measured duration, rounded for reading: 340 ms, 2.5 s, 3 min
// 20 s.
func FormatDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d"+NoBreak+"ms", d.Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(strconv.FormatFloat(d.Truncate(time.Millisecond).Seconds(), 'f', 1, 64), ".0") + NoBreak + "s"
	case d < time.Hour:
		return fmt.Sprintf("%d"+NoBreak+"min %d"+NoBreak+"s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d"+NoBreak+"h %d"+NoBreak+"min", int(d.Hours()), int(d.Minutes())%60)
}
