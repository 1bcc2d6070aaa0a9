// Package httpapi serves the page of locks for operators.
package httpapi

import (
	"embed"
	"html/template"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/auth"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// Permissions of the page. A gateway grants them.
const (
	MaySee     = "resource-locks.locks.collection.get"
	MayRelease = "resource-locks.locks.item.delete"
)

// Permissions returns them all.
func Permissions() []string { return []string{MaySee, MayRelease} }

const (
	rootPath = "/locks/"
	// assetPath is the route of the files that pages load.
	assetPath = rootPath + "-/:asset"

	locksShown    = 500    // of each kind
	locksRead     = 10_000 // of each kind, in search of those that match
	claimsShown   = 500
	releasesShown = 50
)

//go:embed templates
var embedded embed.FS

// Options configure New. All other fields are required.
type Options struct {
	Locks  *engine.Locks
	Claims *engine.Claims
	Recent *engine.Recent // the events that the page shows
	Kinds  []Kind         // of flat locks
	Guard  *auth.Guard
	// SignOuts may be nil if people do not sign in here.
	SignOuts auth.SignOuts
	Log      *slog.Logger
}

// pages serves the page of locks.
type pages struct {
	Options
	signIns   *auth.Pages
	templates *page.Templates
	files     page.Files
	streams   *page.Streams
}

// New returns the front of operators.
func New(o Options) (web.Front, error) {
	templates, err := page.ParseTemplates(embedded, template.FuncMap{
		"maxReason": func() int { return engine.MaxReason },
		"event":     nameEvent,
	})
	if err != nil {
		return web.Front{}, err
	}
	files, err := page.ReadFiles(rootPath + "-/")
	if err != nil {
		return web.Front{}, err
	}
	p := &pages{Options: o, templates: templates, files: files, streams: page.NewStreams(o.Log)}
	p.signIns = auth.NewPages(auth.PageOptions{
		Guard: o.Guard, Root: rootPath, Cookie: "locks", SignOuts: o.SignOuts,
		Show: func(c echo.Context, status int, template string, title texts.Code, body any) error {
			return p.show(c, status, template, title, "", body)
		},
	})
	return web.Front{Name: "operators", Routes: p.routes(), BeforeClose: p.streams.Stop}, nil
}

// routes returns the endpoints of the page.
func (p *pages) routes() []web.Route {
	filter := web.Query{Parameters: []web.Parameter{
		{Name: "kind", Meaning: "show the locks of this kind alone"},
		{Name: "search", Meaning: "a part of a name or of an owner"},
		{Name: "done", Meaning: "a change that was made"},
	}}
	routes := []web.Route{
		{Method: http.MethodGet, Path: "/locks", Endpoint: web.Handle(redirectToRoot)},
		{Method: http.MethodGet, Path: rootPath, Permission: MaySee, Endpoint: web.Handle(p.showLocks), Query: filter},
		{Method: http.MethodGet, Path: rootPath + "live", Permission: MaySee, Endpoint: web.Handle(p.followLocks), Query: filter},
		{Method: http.MethodGet, Path: rootPath + "release", Permission: MayRelease, Endpoint: web.Handle(p.askRelease), Query: web.Query{Parameters: targetParameters}},
		{Method: http.MethodPost, Path: rootPath + "release", Permission: MayRelease, Endpoint: web.Handle(p.release), Query: web.Query{Parameters: targetParameters}},
	}
	withErrors := page.WithErrors(p.showError)
	for i, r := range routes {
		if r.Permission != "" {
			routes[i].Desired = Permissions()
			routes[i].Guards = []echo.MiddlewareFunc{withErrors, p.signIns.Require(r.Permission)}
		}
	}
	routes = append(routes, web.Route{
		Method: http.MethodGet, Path: assetPath, Endpoint: web.Handle(p.files.Serve),
		Query: web.Query{Parameters: []web.Parameter{{Name: "v", Meaning: "the file's version"}}},
	})
	routes = append(routes, p.signIns.Routes(withErrors)...)
	for i := range routes {
		routes[i].NoTenant = true
		// Compression next to typed text would reveal the form token; a page streams.
		routes[i].Uncompressed = routes[i].Path != assetPath
	}
	return routes
}

func redirectToRoot(c echo.Context) error { return c.Redirect(http.StatusSeeOther, root(c)) }

// root is the way from a request's address to the page of locks.
func root(c echo.Context) string { return page.RelativePath(c, rootPath) }

// showError answers with a page that says what went wrong.
func (p *pages) showError(c echo.Context, err error) error {
	f := web.ToFault(err)
	c.Response().Header().Set(fault.Header, string(f.Code))
	shown := page.DescribeProblem(c, err, root(c), page.Outage{Means: "outage.locks", Contact: p.Guard.SupportContact()})
	return p.show(c, fault.Status(f.Code), "error.html", shown.Heading, "", shown)
}

// show answers with a page. note says what was changed before.
func (p *pages) show(c echo.Context, status int, name string, title, note texts.Code, body any) error {
	f := p.files.NewFrame(c)
	f.Brand, f.Title, f.Note.Code, f.Body = "locks.brand", title, note, body
	if p.Guard.Mode() == auth.None {
		f.Warning.Code = "frame.signInOff"
	} else {
		f.Who = okapi.FromContext(c.Request().Context()).UserName
	}
	if f.Who != "" && status < http.StatusBadRequest {
		f.SignOut = p.signIns.SignOutPath(c)
	}
	var err error
	if f.CSRF, err = page.CheckToken(c); err != nil && status < http.StatusBadRequest {
		return err
	}
	return p.templates.Show(c, status, name, f)
}
