package staff

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/auth"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// What all pages share: headers, the tenant, the visitor's name, and error pages.

// visit is one request for a tenant's page.
type visit struct {
	c      echo.Context
	pages  *pages
	tenant okapi.Tenant
	csrf   string
	// results says that the page has an element #results.
	results bool
	reader  page.Reader // of the page
}

func (v *visit) ctx() context.Context { return v.c.Request().Context() }

// say returns a text in the visitor's language. values may be nil.
func (v *visit) say(code texts.Code, values texts.Values) string {
	return v.reader.Say(texts.Text{Code: code, Values: values})
}

// count returns a text that depends on a number, in the visitor's language.
func (v *visit) count(code texts.Code, n int) string {
	return v.say(code, texts.Values{"count": strconv.Itoa(n)})
}

func (v *visit) may(permission string) bool { return v.pages.guard.May(v.ctx(), permission) }

// notes are the messages after a change. The address has only the key, so a link cannot
// put other words on a page.
var notes = map[string]texts.Code{
	"on":       "note.on",
	"off":      "note.off",
	"default":  "note.default",
	"timing":   "note.timing",
	"released": "note.released",
	"machine":  "note.machine",
	"changed":  "machines.changed",
	"password": "note.password",
}

var nav = []struct {
	path, permission string
	text             texts.Code
}{
	{"/", admin.MaySeeSettings, "nav.feature"},
	{"/timing", admin.MaySeeSettings, "nav.timing"},
	{"/locks", admin.MaySeeLocks, "nav.locks"},
	{"/check-outs", admin.MaySeeCheckOuts, "nav.history"},
	{"/contention", admin.MaySeeFigures, "nav.contention"},
	{"/try", admin.MayExplain, "nav.try"},
	{"/machines", admin.MaySeeTerminals, "nav.machines"},
	{"/rules", admin.MaySeeRules, "nav.rules"},
}

// show answers with a page. name is its template, current its place in the navigation.
func (v *visit) show(status int, name, current string, title texts.Code, body any) error {
	f := v.pages.newFrame(v.c, title, body)
	f.Tenant, f.CSRF, f.Results = v.tenant.String(), v.csrf, v.results
	f.SignOut = v.pages.signIns.SignOutPath(v.c)
	if v.pages.guard.Mode() != auth.None { // there a header's user is not trusted
		f.Who = v.pages.admin.ViewerName(v.ctx())
	}
	f.Note.Code = notes[web.QueryOf(v.c).Text("done")]
	f.Nav = v.listPages(current)
	return v.pages.templates.Show(v.c, status, name, f)
}

// listPages links the pages that the visitor may see.
func (v *visit) listPages(current string) []page.Link {
	var links []page.Link
	for _, n := range nav {
		if v.may(n.permission) {
			links = append(links, page.Link{Path: v.path(n.path), Text: n.text, Current: n.path == current})
		}
	}
	return links
}

func (p *pages) newFrame(c echo.Context, title texts.Code, body any) page.Frame {
	f := p.files.NewFrame(c)
	f.Brand, f.Title, f.Body = "frame.brand", title, body
	if p.guard.Mode() == auth.None {
		f.Warning.Code = "frame.signInOff"
	}
	return f
}

// showSignIn shows a page of the sign-in. It has no navigation, because the visitor is not signed in.
func (p *pages) showSignIn(c echo.Context, status int, template string, title texts.Code, body any) error {
	f := p.newFrame(c, title, body)
	f.Tenant = c.Param("tenant")
	var err error
	if f.CSRF, err = page.CheckToken(c); err != nil {
		return err
	}
	return p.templates.Show(c, status, template, f)
}

// withTenant serves pages of the tenant in the path. Behind a gateway it must be the one whose
// permissions the gateway sent.
func (p *pages) withTenant(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		name := c.Param("tenant")
		id, err := okapi.ParseTenant(strings.ToLower(name))
		if err != nil {
			return page.Refuse(fault.NotFound, "error.noLibrary", texts.Values{"name": fault.Shown(name)})
		}
		if id.String() != name { // as people type it
			to := *c.Request().URL
			to.Path, to.RawPath = "/staff/"+id.String()+strings.TrimPrefix(to.Path, "/staff/"+name), ""
			return c.Redirect(http.StatusSeeOther, page.RelativePath(c, to.RequestURI()))
		}
		if p.guard.Mode() == auth.Gateway {
			switch sent := c.Request().Header.Get(okapi.TenantHeader); sent {
			case id.String():
			case "":
				return page.Explain(fault.New(fault.Forbidden, "The gateway in front sent no %s, so your permissions are not known. "+
					"Without a gateway, set STAFF_AUTH to basic, oidc or none.", okapi.TenantHeader), "error.noGateway")
			default:
				return page.Refuse(fault.Forbidden, "error.otherLibrary", texts.Values{"of": fault.Shown(sent), "to": id.String()})
			}
		}
		c.SetRequest(c.Request().WithContext(okapi.WithTenant(c.Request().Context(), id)))
		return next(c)
	}
}

// withVisit serves a page after withTenant.
func (p *pages) withVisit(h func(*visit) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := okapi.TenantFrom(c.Request().Context())
		if err != nil {
			return err
		}
		token, err := page.CheckToken(c)
		if err != nil {
			return err
		}
		return h(&visit{c: c, pages: p, tenant: id, csrf: token, reader: page.NewReader(c)})
	}
}

func refusePath(echo.Context) error { return page.Refuse(fault.NotFound, "error.noSuchPage", nil) }

// showFirst handles GET /: it leads to the pages.
func showFirst(c echo.Context) error {
	return c.Redirect(http.StatusSeeOther, page.RelativePath(c, "/staff/"))
}

type tenantPage struct {
	Action, Name string
	Wrong        texts.Text
}

// chooseTenant handles GET /staff/ and /staff/{tenant}: it redirects to the tenant in
// the path, the gateway's header or the form.
func (p *pages) chooseTenant(c echo.Context) error {
	name := cmp.Or(c.Param("tenant"), c.Request().Header.Get(okapi.TenantHeader), web.QueryOf(c).Text("tenant"))
	status, wrong := http.StatusOK, texts.Text{}
	if name != "" {
		id, err := okapi.ParseTenant(strings.ToLower(strings.TrimSpace(name)))
		if err == nil {
			return c.Redirect(http.StatusSeeOther, page.RelativePath(c, "/staff/"+id.String()+"/"))
		}
		status, wrong = http.StatusUnprocessableEntity, texts.Text{Code: "tenant.wrong"}
	}
	return p.templates.Show(c, status, "tenant.html", p.newFrame(c, "tenant.heading", tenantPage{page.RelativePath(c, "/staff/"), name, wrong}))
}

// showError answers with a page that says what went wrong and what can be done.
func (p *pages) showError(c echo.Context, err error) error {
	ctx := c.Request().Context()
	code := web.ToFault(err).Code
	shown := page.DescribeProblem(c, err, page.RelativePath(c, "/staff/"), page.Outage{
		Means: "outage.lending", Contact: p.guard.SupportContact(),
	})
	if code == fault.Forbidden && p.guard.Mode() == auth.Gateway {
		shown.Advice.Code = "error.permissionHelp"
	}
	noTenant := code == fault.NotFound || code == fault.Malformed || code == fault.UnknownTenant
	if t := c.Param("tenant"); t != "" && !noTenant {
		shown.Back = page.RelativePath(c, "/staff/"+url.PathEscape(t)+"/")
	}
	c.Response().Header().Set(fault.Header, string(code))
	frame := p.newFrame(c, shown.Heading, shown)
	if id, err := okapi.TenantFrom(ctx); err == nil {
		v := visit{c: c, pages: p, tenant: id}
		frame.Tenant, frame.Nav = id.String(), v.listPages("")
	}
	if p.guard.Mode() != auth.None {
		frame.Who, _ = p.admin.KnownViewerName(ctx) // asks no storage, which may be down
	}
	return p.templates.Show(c, fault.Status(code), "error.html", frame)
}
