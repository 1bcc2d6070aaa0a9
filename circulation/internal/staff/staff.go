// Package staff serves the pages for librarians and operators. Librarians turn the
// check-out lock on and off; operators find out why a check-out does not proceed. The
// server renders the pages from what package admin reads, and they work without
// JavaScript.
package staff

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/drill"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/web"
	"checkoutlock/web/auth"
	"checkoutlock/web/page"
)

// Admin is what the pages show and do; see admin.Service.
type Admin interface {
	admin.Desk
	admin.TerminalStore
	Rules(ctx context.Context) (admin.RulesReview, error)
	NameRules(ctx context.Context, text string) map[string]string
	CountUncounted(ctx context.Context) (int, error)
	Patrons(ctx context.Context, ids []string) (map[string]library.User, error)
	FindPatron(ctx context.Context, text string) (admin.FoundPatrons, error)
	ListServicePoints(ctx context.Context) ([]library.ServicePoint, error)
	AllServicePoints(ctx context.Context) ([]library.ServicePoint, error)
	NamePast(ctx context.Context, list []schemas.PastCheckOut, patrons bool) admin.Names
	ReviewLimit(ctx context.Context) (admin.LimitReview, error)
	ViewerName(ctx context.Context) string
	KnownViewerName(ctx context.Context) (name string, known bool)
}

// Drills show what the lock does; see drill.Service.
type Drills interface {
	// Run runs a drill in a tenant of its own.
	Run(ctx context.Context) (drill.Result, error)
}

// Options configure New. All other fields are required.
type Options struct {
	Admin Admin
	// Drills may be nil: then there are none.
	Drills Drills
	Guard  *auth.Guard
	// SignOuts may be nil if people do not sign in here.
	SignOuts auth.SignOuts
	Log      *slog.Logger
}

// pages serves the staff pages of all tenants under /staff/.
type pages struct {
	admin     Admin
	drills    Drills
	guard     *auth.Guard
	signIns   *auth.Pages
	log       *slog.Logger
	templates *page.Templates
	files     page.Files
	streams   *page.Streams
}

// New returns the front of the pages.
func New(o Options) (web.Front, error) {
	t, err := page.ParseTemplates(embedded, formats())
	if err != nil {
		return web.Front{}, err
	}
	files, err := page.ReadFiles("/staff/-/")
	if err != nil {
		return web.Front{}, err
	}
	p := &pages{
		admin: o.Admin, drills: o.Drills, guard: o.Guard, log: o.Log, templates: t, files: files,
		streams: page.NewStreams(o.Log),
	}
	p.signIns = auth.NewPages(auth.PageOptions{
		Guard: o.Guard, Root: root, Tenant: "tenant", Cookie: "staff", SignOuts: o.SignOuts, Show: p.showSignIn,
	})
	return web.Front{Name: "staff", Routes: p.routes(), BeforeClose: p.streams.Stop}, nil
}

// embedded has the pages.
//
//go:embed templates
var embedded embed.FS

// root is the path above all pages.
const root = "/staff/"

// assetPath is the route of the files that pages load. No tenant has the name "-".
const assetPath = "/staff/-/:asset"

// routes returns the pages' endpoints. Pages name their tenant in the path, because a
// browser sends no X-Okapi-Tenant.
func (p *pages) routes() []web.Route {
	withErrors := page.WithErrors(p.showError)
	routes := []web.Route{
		{Method: http.MethodGet, Path: "/", Endpoint: web.Handle(showFirst), Guards: []echo.MiddlewareFunc{withErrors}},
		{Method: http.MethodGet, Path: "/staff/*", Endpoint: web.Handle(refusePath), Guards: []echo.MiddlewareFunc{withErrors}},
		{
			Method: http.MethodGet, Path: assetPath, Endpoint: web.Handle(p.files.Serve),
			Query: web.Query{Parameters: []web.Parameter{{Name: "v", Meaning: "the file's version"}}},
		},
	}
	for _, path := range []string{"/staff", "/staff/", "/staff/:tenant"} { // as people type it
		routes = append(routes, web.Route{
			Method: http.MethodGet, Path: path, Endpoint: web.Handle(p.chooseTenant), Guards: []echo.MiddlewareFunc{withErrors},
			Query: web.Query{Parameters: []web.Parameter{{Name: "tenant", Meaning: "the tenant"}}},
		})
	}
	const barcode = "a barcode"
	offset := web.Offset(schemas.MaxHistoryOffset)
	filters := []web.Parameter{
		{Name: "patron", Meaning: "a barcode or an id"},
		{Name: "holder", Meaning: "an instance"},
		{Name: "state", Meaning: "which locks", Allowed: []string{stateExpired, stateAll}},
	}
	search := []web.Parameter{
		offset,
		{Name: "patron", Meaning: "a barcode, a username or a name"},
		{Name: "item", Meaning: barcode},
		{Name: "outcome", Meaning: "how check-outs ended"},
		{Name: "code", Meaning: "the code of a refusal"},
		{Name: "servicePoint", Meaning: "a service point's id"},
		{Name: "around", Meaning: "a time of day, such as 14:03"},
		{Name: "from", Meaning: "the earliest end, in local time"},
		{Name: "until", Meaning: "the latest end, in local time"},
	}
	charts := []web.Parameter{{Name: "span", Meaning: "how far back"}, {Name: "servicePoint", Meaning: "a service point's id"}}
	for _, r := range []struct {
		method, path, permission string
		handler                  func(*visit) error
		parameters               []web.Parameter
	}{
		{http.MethodGet, "/", admin.MaySeeSettings, p.showFeature, []web.Parameter{offset}},
		{http.MethodGet, "/switch", admin.MayChangeSettings, p.askSwitch, []web.Parameter{{Name: "to", Meaning: "on, off or default"}}},
		{http.MethodPost, "/switch", admin.MayChangeSettings, p.turnSwitch, nil},
		{http.MethodGet, "/timing", admin.MaySeeSettings, p.showTiming, []web.Parameter{{Name: "choice", Meaning: "a choice to fill in"}}},
		{http.MethodPost, "/timing", admin.MayChangeSettings, p.saveTiming, nil},
		{http.MethodGet, "/timing/sums", admin.MaySeeSettings, p.showSums, []web.Parameter{
			{Name: ttlField, Meaning: "the lock's time as typed"}, {Name: waitsField, Meaning: "the waits as typed"},
		}},
		{http.MethodGet, "/drill", admin.MayDrill, p.showDrill, nil},
		{http.MethodPost, "/drill", admin.MayDrill, p.runDrill, nil},
		{http.MethodGet, "/locks", admin.MaySeeLocks, p.showLocks, filters},
		{http.MethodGet, "/locks/live", admin.MaySeeLocks, p.streamLocks, filters},
		{http.MethodGet, "/locks/:lock/release", admin.MayReleaseLocks, p.askRelease, nil},
		{http.MethodPost, "/locks/:lock/release", admin.MayReleaseLocks, p.releaseLock, nil},
		{http.MethodGet, "/check-outs", admin.MaySeeCheckOuts, p.showCheckOuts, search},
		{http.MethodGet, "/check-outs.csv", admin.MaySeeCheckOuts, p.saveCheckOuts, search},
		{http.MethodGet, "/contention", admin.MaySeeFigures, p.showContention, charts},
		{http.MethodGet, "/contention.csv", admin.MaySeeFigures, p.saveFigures, charts},
		{http.MethodGet, "/contention/live", admin.MaySeeFigures, p.streamContention, charts},
		{http.MethodGet, "/machines", admin.MaySeeTerminals, p.showTerminals, nil},
		{http.MethodPost, "/machines", admin.MayChangeTerminals, p.addTerminal, nil},
		{http.MethodGet, "/machines/:terminal", admin.MayChangeTerminals, p.askTerminal, nil},
		{http.MethodPost, "/machines/:terminal", admin.MayChangeTerminals, p.changeTerminal, nil},
		{http.MethodGet, "/machines/:terminal/password", admin.MayChangeTerminals, p.askPassword, nil},
		{http.MethodPost, "/machines/:terminal/password", admin.MayChangeTerminals, p.setPassword, nil},
		{http.MethodGet, "/rules", admin.MaySeeRules, p.showRules, []web.Parameter{{Name: idsParam, Meaning: "whether to show ids", Allowed: []string{patronsShown}}}},
		{http.MethodGet, "/try", admin.MayExplain, p.showTrial, []web.Parameter{
			{Name: "itemBarcode", Meaning: barcode}, {Name: "userBarcode", Meaning: barcode}, {Name: "proxyUserBarcode", Meaning: barcode},
		}},
	} {
		routes = append(routes, web.Route{
			Method: r.method, Path: "/staff/:tenant" + r.path, Permission: r.permission, Desired: admin.Permissions(), Endpoint: web.Handle(p.withVisit(r.handler)),
			Query:  web.Query{Parameters: slices.Concat(pageParameters, r.parameters), Refuse: refuseParameter},
			Guards: []echo.MiddlewareFunc{withErrors, p.withTenant, p.signIns.Require(r.permission)},
		})
	}
	routes = append(routes, p.signIns.Routes(withErrors, p.withTenant)...)
	for i := range routes {
		routes[i].NoTenant = true // the path has it
		// Compression next to typed text would reveal the form token; some pages stream.
		routes[i].Uncompressed = routes[i].Path != assetPath
	}
	return routes
}
