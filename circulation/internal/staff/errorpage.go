package staff

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/auth"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// problem is an error as a page shows it.
type problem struct {
	Heading   string
	Text      string
	Advice    string
	RequestID string // by which an operator finds the log lines
	Back      string
}

// showError answers with a page that says what went wrong and what can be done.
func (p *Pages) showError(c echo.Context, err error) {
	f := web.ToFault(err)
	code := f.Code
	shown := problem{Heading: heading(code), Text: f.Msg, RequestID: okapi.FromContext(c.Request().Context()).RequestID, Back: "/staff/"}
	if known := (*fault.Error)(nil); code == fault.Internal && !errors.As(err, &known) {
		shown.Text = "The service could not make this page." // what went wrong inside is for the log
	}
	if code == fault.Forbidden && p.Guard.Mode() == auth.Gateway {
		shown.Advice = "Whoever gives out permissions in your library can help."
	}
	if t := c.Param("tenant"); t != "" && code != fault.NotFound && code != fault.Malformed && code != fault.UnknownTenant { // no such tenant, say
		shown.Back = "/staff/" + t + "/"
	}
	c.Response().Header().Set(fault.Header, string(code))
	around := p.frame(shown.Heading, shown)
	if id, err := okapi.TenantFrom(c.Request().Context()); err == nil { // else the way on is the first page
		v := visit{Context: c, pages: p, tenant: id}
		around.Tenant, around.Nav = id.String(), v.nav("")
	}
	if p.Guard.Mode() != auth.None {
		around.Who, _ = p.Admin.KnownWho(c.Request().Context()) // storage may be what went wrong
	}
	if err := p.write(c, fault.Status(code), "error.html", around); err != nil {
		p.Log.ErrorContext(c.Request().Context(), "error page not written", "err", err)
	}
}

func heading(code fault.Code) string {
	switch fault.Status(code) {
	case http.StatusUnauthorized:
		return "Please sign in"
	case http.StatusForbidden:
		return "You may not do that"
	case http.StatusNotFound:
		return "There is nothing here"
	case http.StatusConflict:
		return "Somebody else was faster"
	case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return "Not available right now"
	case http.StatusInternalServerError:
		return "Something went wrong"
	}
	return "That cannot be done"
}
