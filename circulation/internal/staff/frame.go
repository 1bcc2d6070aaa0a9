package staff

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/auth"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// What all pages share: headers, the tenant, the visitor's name, and error pages.

// contentSecurityPolicy lets a page load and call this service only, and forbids inline
// scripts and styles.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	// The address of a search has a barcode, which no other site may get. The policy
	// no-referrer would make a form's Origin null. Over plain http browsers send no
	// Sec-Fetch-Site, so there the Origin alone proves where a form comes from.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// visit is one request for a tenant's page.
type visit struct {
	c      echo.Context
	pages  *Pages
	tenant okapi.Tenant
	csrf   string
}

func (v *visit) ctx() context.Context { return v.c.Request().Context() }

func (v *visit) may(permission string) bool { return v.pages.guard.May(v.ctx(), permission) }

// notes are the messages after a change. The address has only the key, so a link cannot
// put other words on a page.
var notes = map[string]string{
	"on":       "The check-out lock is on now.",
	"off":      "The check-out lock is off now.",
	"default":  "This library now follows the service's own setting.",
	"timing":   "The new times are saved.",
	"released": "The lock was released.",
}

// frame is the data of layout.html.
type frame struct {
	Title   string
	Tenant  string
	Who     string // empty without a sign-in, or if the name is not known
	Warning string
	Note    string
	CSRF    string
	Nav     []link
	Script  string // paths
	Style   string
	Icon    string
	Body    any
}

type link struct {
	Path, Text string
	Current    bool
}

var nav = []struct{ path, permission, text string }{
	{"/", admin.MaySeeSettings, "Feature"},
	{"/timing", admin.MaySeeSettings, "Timing"},
	{"/locks", admin.MaySeeLocks, "Live locks"},
	{"/check-outs", admin.MaySeeCheckOuts, "What happened"},
	{"/contention", admin.MaySeeFigures, "Contention"},
	{"/try", admin.MayExplain, "Try a check-out"},
}

// show answers with a page. name is its template, page its place in the navigation.
func (v *visit) show(status int, name, page, title string, body any) error {
	f := v.pages.newFrame(title, body)
	f.Tenant, f.CSRF = v.tenant.String(), v.csrf
	if v.pages.guard.Mode() != auth.None { // there a header's user is not trusted
		f.Who = v.pages.admin.ViewerName(v.ctx())
	}
	f.Note = notes[web.QueryOf(v.c).Text("done")]
	f.Nav = v.listPages(page)
	return v.pages.writePage(v.c, status, name, f)
}

// listPages links the pages that the visitor may see.
func (v *visit) listPages(current string) []link {
	var links []link
	for _, n := range nav {
		if v.may(n.permission) {
			links = append(links, link{Path: v.path(n.path), Text: n.text, Current: n.path == current})
		}
	}
	return links
}

func (p *Pages) newFrame(title string, body any) frame {
	f := frame{Title: title, Body: body, Script: p.assets["staff.js"].path, Style: p.assets["staff.css"].path, Icon: p.assets["staff.svg"].path}
	if p.guard.Mode() == auth.None {
		f.Warning = "Sign-in is off (STAFF_AUTH=none): everyone at this computer can change everything here."
	}
	return f
}

// writePage renders the whole page before it sends the status.
func (p *Pages) writePage(c echo.Context, status int, name string, f frame) error {
	page, err := p.templates.render(name, layout, f)
	if err != nil {
		return err
	}
	return c.HTMLBlob(status, page)
}

// withErrorPage sets the headers and answers errors as pages. It passes the error on to
// the log. A visitor who left gets no page, because the edge counts those apart.
func (p *Pages) withErrorPage(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		setHeaders(c.Response().Header())
		err := h(c)
		if err != nil && !errors.Is(err, context.Canceled) && !c.Response().Committed {
			p.showError(c, err)
		}
		return err
	}
}

// withTenant admits visitors with the permission to pages of the tenant in the path.
// Behind a gateway the tenant must be the one whose permissions the gateway sent.
func (p *Pages) withTenant(permission string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		admitted := p.guard.Wrap(permission, next)
		return func(c echo.Context) error {
			id, err := okapi.ParseTenant(c.Param("tenant"))
			if err != nil {
				return fault.New(fault.NotFound, "There is no such tenant: %v", err)
			}
			if p.guard.Mode() == auth.Gateway {
				switch sent := c.Request().Header.Get(okapi.TenantHeader); sent {
				case id.String():
				case "":
					return fault.New(fault.Forbidden, "The gateway in front sent no %s, so your permissions are not known. "+
						"Without a gateway, set STAFF_AUTH to basic or none.", okapi.TenantHeader)
				default:
					return fault.New(fault.Forbidden, "You are signed in to the tenant %s, not to %s", fault.Shown(sent), id)
				}
			}
			c.SetRequest(c.Request().WithContext(okapi.WithTenant(c.Request().Context(), id)))
			return admitted(c)
		}
	}
}

// withVisit serves a page after withTenant.
func (p *Pages) withVisit(h func(*visit) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := okapi.TenantFrom(c.Request().Context())
		if err != nil {
			return err
		}
		token, err := checkToken(c)
		if err != nil {
			return err
		}
		return h(&visit{c: c, pages: p, tenant: id, csrf: token})
	}
}

func refusePath(echo.Context) error { return fault.New(fault.NotFound, "There is no such page.") }

// chooseTenant handles GET /staff/ and /staff/{tenant}: it redirects to the tenant in
// the path, the gateway's header or the form.
func (p *Pages) chooseTenant(c echo.Context) error {
	name := cmp.Or(c.Param("tenant"), c.Request().Header.Get(okapi.TenantHeader), web.QueryOf(c).Text("tenant"))
	status, wrong := http.StatusOK, ""
	if name != "" {
		id, err := okapi.ParseTenant(name)
		if err == nil {
			return c.Redirect(http.StatusSeeOther, "/staff/"+id.String()+"/")
		}
		status, wrong = http.StatusUnprocessableEntity, err.Error()
	}
	return p.writePage(c, status, "tenant.html", p.newFrame("Which library?", struct{ Name, Wrong string }{name, wrong}))
}

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
	shown := problem{Heading: cmp.Or(headings[fault.Status(code)], "That cannot be done"), Text: f.Msg, RequestID: okapi.FromContext(ctx).RequestID, Back: "/staff/"}
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
