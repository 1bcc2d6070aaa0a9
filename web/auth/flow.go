package auth

import (
	"crypto/subtle"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/web/page"
)

const (
	// flowTime is how long a person may take at the provider.
	flowTime = 10 * time.Minute
	// flowKey is how many characters of its state name the cookie of a flow.
	flowKey = 8
)

// flow is one way to the provider and back. A sealed cookie of its own carries it, so tabs of one
// browser may sign in at once.
type flow struct {
	State, Nonce, Verifier, Tenant, To string
	Began                              time.Time
}

// flowCookies begins the names of the flows' cookies.
func (p *Pages) flowCookies() string { return p.Cookie + "_flow_" }

func (p *Pages) flowCookie(state string) string { return p.flowCookies() + state[:flowKey] }

// findFlow returns the flow with a state, and the name of its cookie. Fault: Unauthorized.
func (p *Pages) findFlow(c echo.Context, state string) (f flow, cookie string, err error) {
	if len(state) >= flowKey {
		cookie = p.flowCookie(state)
		if p.Guard.unseal(cookie, page.ReadCookie(c, cookie), &f) && time.Since(f.Began) < flowTime &&
			subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) == 1 {
			return f, cookie, nil
		}
	}
	return flow{}, "", page.Refuse(fault.Unauthorized, "signIn.notBegun", nil)
}

// dropFlows removes the cookies of flows. It keeps the newest ones, with at most so many bytes together.
func (p *Pages) dropFlows(c echo.Context, most int) {
	dropOldest(c, page.FindCookies(c, p.flowCookies()), most, func(cookie, sent string) time.Time {
		var f flow
		p.Guard.unseal(cookie, sent, &f)
		return f.Began
	})
}
