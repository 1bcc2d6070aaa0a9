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
	RequestID string // finds the log lines
	Back      string
}

// showError answers with a page that says what went wrong and what can be done.
func (p *Pages) showError(c echo.Context, err error) {
	ctx := c.Request().Context()
	f := web.ToFault(err)
	code := f.Code
	shown := problem{Heading: chooseHeading(code), Text: f.Msg, RequestID: okapi.FromContext(ctx).RequestID, Back: "/staff/"}
	if known := (*fault.Error)(nil); code == fault.Internal && !errors.As(err, &known) {
		shown.Text = "The service could not make this page." // the log has the cause
	}
	if code == fault.Forbidden && p.guard.Mode() == auth.Gateway {
		shown.Advice = "The person who grants permissions in your library can help."
	}
	noTenant := code == fault.NotFound || code == fault.Malformed || code == fault.UnknownTenant
	if t := c.Param("tenant"); t != "" && !noTenant {
		shown.Back = "/staff/" + t + "/"
	}
	c.Response().Header().Set(fault.Header, string(code))
	page := p.newFrame(shown.Heading, shown)
	if id, err := okapi.TenantFrom(ctx); err == nil {
		v := visit{c: c, pages: p, tenant: id}
		page.Tenant, page.Nav = id.String(), v.listPages("")
	}
	if p.guard.Mode() != auth.None {
		page.Who, _ = p.admin.KnownViewerName(ctx) // asks no storage, which may be down
	}
	if err := p.writePage(c, fault.Status(code), "error.html", page); err != nil {
		p.log.ErrorContext(ctx, "error page not written", "err", err)
	}
}

func chooseHeading(code fault.Code) string {
	switch fault.Status(code) {
	case http.StatusUnauthorized:
		return "Please sign in"
	case http.StatusForbidden:
		return "You may not do that"
	case http.StatusNotFound:
		return "There is nothing here"
	case http.StatusConflict:
		return "Another change came first"
	case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return "Not available right now"
	case http.StatusInternalServerError:
		return "Something went wrong"
	}
	return "That cannot be done"
}
