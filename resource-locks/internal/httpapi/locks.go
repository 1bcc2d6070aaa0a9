package httpapi

import (
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/web"
)

// locksPage is the data of locks.html.
type locksPage struct {
	Namespace string // of the filter; empty is all
	Now       time.Time
	Locks     []lockRow
	Claims    []claimRow
	Releases  []engine.Release
	Events    []engine.Event
	Full      bool // some locks or claims are not shown
}

type lockRow struct {
	engine.Lock
	Release string // path; empty without the permission
}

type claimRow struct {
	engine.ClaimInfo
	Paths   string
	Release string
}

// showLocks handles GET /locks/.
func (p *pages) showLocks(c echo.Context) error {
	ctx := c.Request().Context()
	namespace := web.QueryOf(c).Text("namespace")
	body := locksPage{Namespace: namespace, Now: time.Now(), Events: p.recent.List()}
	locks, err := p.locks.List(ctx, engine.Filter{Namespace: namespace, Limit: locksShown})
	if err != nil {
		return err
	}
	claims, err := p.claims.List(ctx, namespace, claimsShown)
	if err != nil {
		return err
	}
	if body.Releases, err = p.locks.Releases(ctx, releasesShown); err != nil {
		return err
	}
	mayRelease := p.guard.May(ctx, MayRelease)
	for _, l := range locks {
		row := lockRow{Lock: l}
		if mayRelease {
			row.Release = releasePath(target{Namespace: l.Namespace, Name: l.Name, Lock: l.ID.String()})
		}
		body.Locks = append(body.Locks, row)
	}
	for _, claim := range claims {
		row := claimRow{ClaimInfo: claim, Paths: engine.FormatResources(claim.Resources)}
		if mayRelease {
			row.Release = releasePath(target{Namespace: claim.Namespace, Claim: claim.ID.String()})
		}
		body.Claims = append(body.Claims, row)
	}
	body.Full = len(locks) == locksShown || len(claims) == claimsShown
	note := ""
	if web.QueryOf(c).Text("done") == "released" { // the address has only a key, so a link puts no words on a page
		note = "The lock was released."
	}
	return p.show(c, http.StatusOK, "locks.html", "Locks", note, body)
}

// releasePath is the address of the page that releases a lock or a claim.
func releasePath(t target) string {
	q := url.Values{}
	for name, value := range map[string]string{"namespace": t.Namespace, "name": t.Name, "lock": t.Lock, "claim": t.Claim} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return root + "release?" + q.Encode()
}
