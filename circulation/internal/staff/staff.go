// Package staff is the page for people: librarians, who turn the check-out lock on
// and off, and whoever looks when something is stuck. It is HTML made here, works
// without JavaScript, and shows what package admin knows.
package staff

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/auth"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/web"
)

// Admin is what the pages show and do; admin.Service says more.
type Admin interface {
	Environment() settings.Environment
	Settings(ctx context.Context) (settings.View, error)
	ChangeSettings(ctx context.Context, body json.RawMessage) (settings.View, error)
	Changes(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error)
	Locks(ctx context.Context, f admin.LockFilter) (schemas.CheckoutLocks, error)
	Lock(ctx context.Context, lockID string) (schemas.CheckoutLock, error)
	Release(ctx context.Context, lockID, reason string) (schemas.CheckoutLock, error)
	CheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error)
	Figures(ctx context.Context, minutes int) (schemas.Figures, error)
	Explain(ctx context.Context, req checkout.DryRunRequest) (checkout.Explanation, error)
	Patrons(ctx context.Context, ids []string) (map[string]checkout.User, error)
	PatronID(ctx context.Context, barcode string) (string, error)
	Who(ctx context.Context) string
	KnownWho(ctx context.Context) (name string, known bool)
}

// Guard decides who may; auth.Guard says more.
type Guard interface {
	Mode() auth.Mode
	Wrap(permission string, h echo.HandlerFunc) echo.HandlerFunc
	May(ctx context.Context, permission string) bool
}

// Options configure New. All fields are required.
type Options struct {
	Admin Admin
	Guard Guard
	Log   *slog.Logger
}

// Pages serves the staff pages of all tenants under /staff/.
type Pages struct {
	Options
	templates templates
	assets    map[string]asset
	streams   chan struct{} // a place for each page that is told what changes
	stopped   chan struct{}
	stopOnce  sync.Once
}

// New returns the pages.
func New(o Options) (*Pages, error) {
	t, err := parseTemplates()
	if err != nil {
		return nil, err
	}
	assets, err := readAssets()
	if err != nil {
		return nil, err
	}
	return &Pages{
		Options: o, templates: t, assets: assets,
		streams: make(chan struct{}, maxStreams), stopped: make(chan struct{}),
	}, nil
}

// Stop ends the streams of all open pages, so that they do not hold up the
// service's stop. Pages can still be loaded afterwards.
func (p *Pages) Stop() { p.stopOnce.Do(func() { close(p.stopped) }) }

// assetPath is where the files are that pages load.
const assetPath = "/staff/-/:asset"

// Routes returns the pages' endpoints. Pages name their tenant in the path, since a
// browser sends no X-Okapi-Tenant.
func (p *Pages) Routes() []web.Route {
	routes := []web.Route{
		{Method: http.MethodGet, Path: "/staff", Handler: p.framed(p.chooseTenant)},
		{Method: http.MethodGet, Path: "/staff/", Handler: p.framed(p.chooseTenant)},
		{Method: http.MethodGet, Path: "/staff/:tenant", Handler: p.framed(p.chooseTenant)}, // as people type it
		{Method: http.MethodGet, Path: assetPath, Handler: p.serveAsset},
		{Method: http.MethodGet, Path: "/staff/*", Handler: p.framed(noSuchPage)},
	}
	for _, r := range []struct {
		method, path, permission string
		handler                  func(*visit) error
	}{
		{http.MethodGet, "/", admin.MaySeeSettings, p.feature},
		{http.MethodGet, "/switch", admin.MayChangeSettings, p.askSwitch},
		{http.MethodPost, "/switch", admin.MayChangeSettings, p.doSwitch},
		{http.MethodGet, "/timing", admin.MaySeeSettings, p.timing},
		{http.MethodPost, "/timing", admin.MayChangeSettings, p.saveTiming},
		{http.MethodGet, "/timing/sums", admin.MaySeeSettings, p.timingSums},
		{http.MethodGet, "/locks", admin.MaySeeLocks, p.locks},
		{http.MethodGet, "/locks/live", admin.MaySeeLocks, p.liveLocks},
		{http.MethodGet, "/locks/:lock/release", admin.MayReleaseLocks, p.askRelease},
		{http.MethodPost, "/locks/:lock/release", admin.MayReleaseLocks, p.doRelease},
		{http.MethodGet, "/check-outs", admin.MaySeeCheckOuts, p.checkOuts},
		{http.MethodGet, "/contention", admin.MaySeeFigures, p.contention},
		{http.MethodGet, "/contention/live", admin.MaySeeFigures, p.liveContention},
		{http.MethodGet, "/try", admin.MayExplain, p.try},
	} {
		routes = append(routes, web.Route{
			Method: r.method, Path: "/staff/:tenant" + r.path, Permission: r.permission,
			Handler: p.framed(p.ofTenant(r.permission, r.handler)),
		})
	}
	for i := range routes {
		routes[i].NoTenant = true // the path has it
		// Pages show the form token beside what was searched for, and some stream.
		routes[i].Uncompressed = routes[i].Path != assetPath
	}
	return routes
}
