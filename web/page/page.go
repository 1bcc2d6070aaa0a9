// Package page is what the pages of the services share: their look and frame, headers,
// embedded files, templates, the CSRF check and error pages.
package page

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/texts"
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

// WithErrors serves pages. It sets their headers, keeps the language that a visitor chooses, and answers an
// error by show. It passes errors on to the log. A visitor who left gets no page, because the edge counts
// those apart.
func WithErrors(show func(c echo.Context, err error) error) echo.MiddlewareFunc {
	return func(h echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			SetHeaders(c.Response().Header())
			keepLanguage(c)
			err := h(c)
			if err != nil && !errors.Is(err, context.Canceled) && !c.Response().Committed {
				web.SetRetryAfter(c.Response().Header(), web.ToFault(err))
				err = errors.Join(err, show(c, err))
			}
			return err
		}
	}
}

// Frame is the data of layout.html. Files.NewFrame makes one.
type Frame struct {
	Brand     texts.Code // what the service is, above every page
	Title     texts.Code
	Tenant    string
	Who       string // empty without a sign-in, or if the name is not known
	Warning   texts.Text
	Note      texts.Text
	SignOut   string // the path that ends the visitor's session; empty without one
	CSRF      string
	Results   bool // the page has an element #results, to which the skip link leads
	Nav       []Link
	Language  string
	Languages []Link // the menu
	Script    string // paths
	Style     string
	Icon      string
	Body      any
}

// Link is a place in the navigation.
type Link struct {
	Path     string
	Text     texts.Code
	Language string // of the text and the page; empty for that of the reader
	Current  bool
}

// Reason is the field for the reason of a change, for the template "reason".
type Reason struct {
	Value string     // as it was typed
	Wrong texts.Text // what is wrong with it; empty for nothing
}

// Problem is an error as error.html shows it.
type Problem struct {
	Heading   texts.Code
	Text      texts.Text
	Detail    string // what is wrong, in English; empty if Text says it
	Advice    texts.Text
	Call      texts.Text // the support
	Again     texts.Text // when the page is loaded again
	RequestID string     // finds the log lines
	Back      string     // a path
}

// SignIn is the form of sign-in.html.
type SignIn struct {
	To    string     // the address that was asked for
	Name  string     // as it was typed
	Wrong texts.Text // why that was refused; empty for nothing
}

// Notice is a text with one link, for notice.html.
type Notice struct {
	Text     texts.Code
	Link     string // a path, or an address
	LinkText texts.Code
}

// Outage is what a service's pages say while what it needs is away.
type Outage struct {
	Means   texts.Code // what works, and what does not
	Contact string     // the person or place to call; empty if that is not known
}

// ErrSignInAway is the cause of a fault if people cannot sign in, which says nothing about lending.
var ErrSignInAway = errors.New("the sign-in service is away")

// refusal is a fault with the text for the page that says it in the reader's language.
type refusal struct {
	error // a *fault.Error in English, for programs and the log
	text  texts.Text
}

func (r *refusal) Unwrap() error { return r.error }

// Refuse returns a fault that DescribeProblem says in the reader's language.
func Refuse(code fault.Code, text texts.Code, values texts.Values) error {
	said := texts.Text{Code: text, Values: values}
	return &refusal{fault.New(code, "%s", texts.Delivered().Say(said, texts.English)), said}
}

// Explain returns the fault err, whose words are for operators, with a text for readers.
func Explain(err error, text texts.Code) error { return &refusal{err, texts.Text{Code: text}} }

// retryAfter is when a page that is not available is loaded again, in seconds.
const retryAfter = 10

// DescribeProblem describes an error of a request. Back is the first page. A page that is not
// available loads itself again.
func DescribeProblem(c echo.Context, err error, back string, outage Outage) Problem {
	f := web.ToFault(err)
	shown := Problem{
		Heading: cmp.Or(headings[fault.Status(f.Code)], "error.cannot"), Detail: f.Msg,
		RequestID: okapi.FromContext(c.Request().Context()).RequestID, Back: back,
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		shown.Text, shown.Detail = r.text, ""
	}
	if _, known := errors.AsType[*fault.Error](err); f.Code == fault.Internal && !known {
		shown.Text, shown.Detail = texts.Text{Code: "error.noPage"}, "" // the log has the cause
	}
	if fault.Status(f.Code) < http.StatusInternalServerError {
		return shown
	}
	if outage.Contact != "" {
		shown.Call = texts.Text{Code: "error.call", Values: texts.Values{"contact": outage.Contact}}
	}
	if f.Code == fault.Unavailable {
		shown.Text.Code = outage.Means
		if errors.Is(err, ErrSignInAway) {
			shown.Text.Code = "outage.signIn"
		}
	}
	if passes := f.Code == fault.Unavailable || f.Code == fault.Timeout || f.Code == fault.Overloaded; passes && c.Request().Method == http.MethodGet {
		shown.Again = texts.Text{Code: "error.again", Values: texts.Values{"seconds": strconv.Itoa(retryAfter)}}
		c.Response().Header().Set("Refresh", strconv.Itoa(retryAfter))
	}
	return shown
}

// headings of error pages; any other status is error.cannot.
var headings = map[int]texts.Code{
	http.StatusUnauthorized:        "error.signIn",
	http.StatusForbidden:           "error.mayNot",
	http.StatusNotFound:            "error.nothingHere",
	http.StatusConflict:            "error.conflict",
	http.StatusBadGateway:          "error.unavailable",
	http.StatusGatewayTimeout:      "error.unavailable",
	http.StatusServiceUnavailable:  "error.unavailable",
	http.StatusTooManyRequests:     "error.unavailable",
	http.StatusInternalServerError: "error.internal",
}
