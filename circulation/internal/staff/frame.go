package staff

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/auth"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// What is around every page: headers, the tenant, who signed in, and errors as
// pages.

// contentSecurityPolicy lets a page load and call nothing but what is served here,
// and run no script or style that stands in the page itself.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	// A search has a barcode in its address, which no other site may learn. Not
	// no-referrer: a form's Origin is null under it, and over plain http, where
	// browsers send no Sec-Fetch-Site, nothing else tells that it came from here.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// visit is one request for a tenant's page.
type visit struct {
	echo.Context
	pages  *Pages
	tenant okapi.Tenant
	csrf   string
}

func (v *visit) ctx() context.Context { return v.Request().Context() }

func (v *visit) may(permission string) bool { return v.pages.Guard.May(v.ctx(), permission) }

// path is the address of one of the tenant's pages.
func (v *visit) path(page string) string { return "/staff/" + v.tenant.String() + page }

// done goes on to another page after a change; note is a key of notes. Patrons that
// were shown stay so.
func (v *visit) done(page, note string) error {
	q := url.Values{"done": {note}}
	if patronsAsked(v) {
		q.Set(patronsParam, patronsYes)
	}
	return v.Redirect(http.StatusSeeOther, v.path(page)+"?"+q.Encode())
}

// notes are what a page says after a change; the address has the key, so that
// nobody can make a page say anything else.
var notes = map[string]string{
	"on":       "The check-out lock is on now.",
	"off":      "The check-out lock is off now.",
	"default":  "This library now follows the service's own setting.",
	"timing":   "The new times are saved.",
	"released": "The lock was released.",
}

// frame is what layout.html shows around a page.
type frame struct {
	Title   string
	Tenant  string
	Who     string // empty when nobody signed in or knows the name
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

// show answers with a page. name is its template, page its place in the
// navigation.
func (v *visit) show(status int, name, page, title string, body any) error {
	f := v.pages.frame(title, body)
	f.Tenant, f.CSRF, f.Who = v.tenant.String(), v.csrf, v.who()
	f.Note = notes[v.QueryParam("done")]
	f.Nav = v.nav(page)
	return v.pages.write(v.Context, status, name, f)
}

// nav leads to the pages that the visitor may see.
func (v *visit) nav(current string) []link {
	var links []link
	for _, n := range nav {
		if v.may(n.permission) {
			links = append(links, link{Path: v.path(n.path), Text: n.text, Current: n.path == current})
		}
	}
	return links
}

// who names the visitor; an id alone tells people nothing.
func (v *visit) who() string {
	if v.pages.Guard.Mode() == auth.None {
		return "" // whatever a header says
	}
	return v.pages.Admin.Who(v.ctx())
}

func (p *Pages) frame(title string, body any) frame {
	f := frame{Title: title, Body: body, Script: p.assets["staff.js"].path, Style: p.assets["staff.css"].path, Icon: p.assets["staff.svg"].path}
	if p.Guard.Mode() == auth.None {
		f.Warning = "Nobody is asked to sign in (STAFF_AUTH=none): whoever uses this computer can change everything here."
	}
	return f
}

func (p *Pages) write(c echo.Context, status int, name string, f frame) error {
	var page bytes.Buffer // whole, before its status is sent
	if err := p.templates.execute(&page, name, f); err != nil {
		return err
	}
	return c.HTMLBlob(status, page.Bytes())
}

// framed sets the headers, and answers errors as pages, but for a visitor who left:
// the edge counts that apart from what went wrong. The error goes on to the log all
// the same.
func (p *Pages) framed(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		setHeaders(c.Response().Header())
		err := h(c)
		if err != nil && !errors.Is(err, context.Canceled) && !c.Response().Committed {
			p.showError(c, err)
		}
		return err
	}
}

// ofTenant serves a page of the tenant in the path to those who may see it. Behind
// a gateway that must be the tenant whose permissions were sent.
func (p *Pages) ofTenant(permission string, h func(*visit) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := okapi.ParseTenant(c.Param("tenant"))
		if err != nil {
			return fault.New(fault.NotFound, "There is no such tenant: %v", err)
		}
		if p.Guard.Mode() == auth.Gateway {
			switch sent := c.Request().Header.Get(okapi.TenantHeader); sent {
			case id.String():
			case "":
				return fault.New(fault.Forbidden, "The gateway in front sent no %s, so nobody is known to be allowed here. "+
					"Without a gateway, set STAFF_AUTH to basic or none.", okapi.TenantHeader)
			default:
				return fault.New(fault.Forbidden, "You are signed in to the tenant %s, not to %s", fault.Shown(sent), id)
			}
		}
		c.SetRequest(c.Request().WithContext(okapi.WithTenant(c.Request().Context(), id)))
		return p.Guard.Wrap(permission, func(c echo.Context) error {
			token, err := checkToken(c)
			if err != nil {
				return err
			}
			return h(&visit{Context: c, pages: p, tenant: id, csrf: token})
		})(c)
	}
}

func noSuchPage(echo.Context) error { return fault.New(fault.NotFound, "There is no such page.") }

// chooseTenant handles GET /staff/ and /staff/{tenant}: it leads to the tenant that
// the address, the gateway or the visitor names.
func (p *Pages) chooseTenant(c echo.Context) error {
	name := cmp.Or(c.Param("tenant"), c.Request().Header.Get(okapi.TenantHeader), c.QueryParam("tenant"))
	wrong := ""
	if name != "" {
		id, err := okapi.ParseTenant(name)
		if err == nil {
			return c.Redirect(http.StatusSeeOther, "/staff/"+id.String()+"/")
		}
		wrong = err.Error()
	}
	status := http.StatusOK
	if wrong != "" {
		status = http.StatusUnprocessableEntity
	}
	return p.write(c, status, "tenant.html", p.frame("Which library?", struct{ Name, Wrong string }{name, wrong}))
}
