package auth

import (
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// PageOptions configure NewPages. All fields are required, except Tenant.
type PageOptions struct {
	Guard *Guard
	// Root is the path above all pages, such as /staff/.
	Root string
	// Tenant is the path's parameter that names the tenant; empty without one. Each tenant has
	// sessions of its own below Root.
	Tenant string
	// Cookie begins the names of the service's cookies. Services at one host need different ones.
	Cookie   string
	SignOuts SignOuts
	// Show answers with a page. The names of templates are sign-in.html and notice.html.
	Show func(c echo.Context, status int, template string, title texts.Code, body any) error
}

// Pages guards the pages of a service, and serves how people sign in to them and out again. It is
// safe for concurrent use.
type Pages struct{ PageOptions }

// NewPages returns the guard of a service's pages.
func NewPages(o PageOptions) *Pages { return &Pages{o} }

// hasSessions reports whether people sign in here. Descriptors are made without a guard.
func (g *Guard) hasSessions() bool { return g != nil && (g.mode == Basic || g.mode == OIDC) }

// Require admits callers with the permission, as Guard.Wrap does. With Basic and OIDC a session admits
// them. Others are sent to the sign-in; a change without a session is an Unauthorized fault.
// Programs may send the password of Basic in the header.
func (p *Pages) Require(permission string) echo.MiddlewareFunc {
	return func(h echo.HandlerFunc) echo.HandlerFunc {
		wrapped := p.Guard.Wrap(permission, h)
		return func(c echo.Context) error {
			if _, _, sent := c.Request().BasicAuth(); !p.Guard.hasSessions() || sent && p.Guard.mode == Basic {
				return wrapped(c)
			}
			if err := p.Guard.checkOrigin(c.Request()); err != nil {
				return err
			}
			s, err := p.openSession(c)
			if err != nil {
				return err
			}
			if s.ID == uuid.Nil || p.isDue(c, s) {
				return p.askSignIn(c)
			}
			setCaller(c, s.Name, "", p.Guard.permissionsOf(s))
			if !p.Guard.May(c.Request().Context(), permission) {
				return page.Refuse(fault.Forbidden, "error.notPermitted", texts.Values{"permission": permission, "name": s.Name})
			}
			if now := time.Now(); now.Sub(s.Used) >= renewAfter && !isStream(c) {
				s.Used = now
				if err := p.setSession(c, s); err != nil {
					return err
				}
			}
			return h(c)
		}
	}
}

// isStream reports whether a script follows a page. An open page is no sign of a person.
func isStream(c echo.Context) bool {
	return c.Request().Header.Get(echo.HeaderAccept) == "text/event-stream"
}

// isByScript reports whether a script of a page asks, which shows no sign-in. page.js sets the header.
// Browsers inside apps of Android send it with the app's name.
func isByScript(c echo.Context) bool {
	return isStream(c) || c.Request().Header.Get(echo.HeaderXRequestedWith) == "fetch"
}

func isRead(c echo.Context) bool {
	method := c.Request().Method
	return method == http.MethodGet || method == http.MethodHead
}

// root is the path of the first page of the tenant in the path.
func (p *Pages) root(tenant string) string {
	if p.Tenant == "" {
		return p.Root
	}
	return p.Root + tenant + "/"
}

func (p *Pages) rootOf(c echo.Context) string { return p.root(c.Param(p.Tenant)) }

// linkRoot is the way from the visitor's page to the first one.
func (p *Pages) linkRoot(c echo.Context) string { return page.RelativePath(c, p.rootOf(c)) }

// redirect sends a visitor to a path of this service.
func redirect(c echo.Context, path string) error {
	return c.Redirect(http.StatusSeeOther, page.RelativePath(c, path))
}

func (p *Pages) sessionCookie(tenant string) string {
	if p.Tenant == "" {
		return p.sessionCookies()
	}
	return p.sessionCookies() + "_" + tenant
}

// sessionCookies begins the names of the cookies of sessions.
func (p *Pages) sessionCookies() string { return p.Cookie + "_session" }

// openSession returns the session of the cookie, the zero session for none. It removes the cookie of
// a session that has ended.
func (p *Pages) openSession(c echo.Context) (session, error) {
	name := p.sessionCookie(c.Param(p.Tenant))
	sent := page.ReadCookie(c, name)
	if sent == "" {
		return session{}, nil
	}
	var s session
	over := !p.Guard.unseal(name, sent, &s) || s.isOver(p.Guard.limits, time.Now())
	if !over {
		var err error
		if over, err = p.SignOuts.IsSignedOut(c.Request().Context(), s.ID); err != nil {
			return session{}, err
		}
	}
	if over {
		page.SetCookie(c, name, "", -time.Second)
		return session{}, nil
	}
	return s, nil
}

// dropSessions removes the cookies of other tenants' sessions that were used longest ago.
func (p *Pages) dropSessions(c echo.Context) {
	others := page.FindCookies(c, p.sessionCookies()+"_")
	delete(others, p.sessionCookie(c.Param(p.Tenant)))
	dropOldest(c, others, maxCookieBytes, func(cookie, sent string) time.Time {
		var s session
		p.Guard.unseal(cookie, sent, &s)
		return s.Used
	})
}

// maxCookieBytes bounds the cookies of one kind when one more is set. Servers and proxies bound a
// request's headers.
const maxCookieBytes = 4 << 10

// dropOldest removes cookies. It keeps the newest ones, with at most so many bytes together. readDate
// returns how new a cookie is. One that is of no use, or of another service on the host, has the zero time.
func dropOldest(c echo.Context, cookies map[string]string, most int, readDate func(cookie, sent string) time.Time) {
	dates := map[string]time.Time{}
	for cookie, sent := range cookies {
		dates[cookie] = readDate(cookie, sent)
	}
	newest := slices.SortedFunc(maps.Keys(dates), func(a, b string) int { return dates[b].Compare(dates[a]) })
	for _, cookie := range newest {
		if most -= len(cookie) + len(cookies[cookie]); most < 0 {
			page.SetCookie(c, cookie, "", -time.Second)
		}
	}
}

func (p *Pages) setSession(c echo.Context, s session) error {
	return p.setSealed(c, p.sessionCookie(c.Param(p.Tenant)), s, 0)
}

func (p *Pages) setSealed(c echo.Context, name string, value any, maxAge time.Duration) error {
	sealed, err := p.Guard.seal(name, value)
	if err != nil {
		return err
	}
	page.SetCookie(c, name, sealed, maxAge)
	return nil
}

// askSignIn sends a visitor to the sign-in, and from there back. A form's text would be lost, and a
// script would show the sign-in inside a page: these are Unauthorized faults.
func (p *Pages) askSignIn(c echo.Context) error {
	if !isRead(c) || isByScript(c) {
		return page.Refuse(fault.Unauthorized, "error.signedOut", nil)
	}
	return redirect(c, p.rootOf(c)+"sign-in?to="+url.QueryEscape(c.Request().URL.RequestURI()))
}

// target returns the address to go to after the sign-in: only a page of the tenant, and none that is too long
// for a flow's cookie. A file's address leads to its page: beside a file the sign-in would stay on the screen.
func (p *Pages) target(c echo.Context, to string) string {
	u, err := url.Parse(to)
	root := p.rootOf(c)
	if err != nil || len(to) > 2000 || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, root) || strings.ContainsAny(to, "\\\r\n") || strings.Contains(u.Path, "..") ||
		strings.HasPrefix(u.Path, root+"sign") {
		return root
	}
	u.Path = strings.TrimSuffix(u.Path, ".csv")
	return u.RequestURI()
}

// SignOutPath is the path that ends the caller's session, empty without one. Call it after Wrap.
func (p *Pages) SignOutPath(c echo.Context) string {
	if _, _, sent := c.Request().BasicAuth(); !p.Guard.hasSessions() || sent && p.Guard.mode == Basic {
		return ""
	}
	return page.RelativePath(c, p.rootOf(c)+"sign-out")
}

// Routes returns the routes of the sign-in; there are none if people do not sign in here. outer
// guards all of them, and inner those below the path of a tenant.
func (p *Pages) Routes(outer echo.MiddlewareFunc, inner ...echo.MiddlewareFunc) []web.Route {
	if !p.Guard.hasSessions() {
		return nil
	}
	path := p.Root
	if p.Tenant != "" {
		path += ":" + p.Tenant + "/"
	}
	to := web.Query{Parameters: []web.Parameter{{Name: "to", Meaning: "the page to go to afterwards"}}}
	routes := []web.Route{
		{Method: http.MethodGet, Path: path + "sign-in", Endpoint: web.Handle(p.showSignIn), Query: to},
		{Method: http.MethodPost, Path: path + "sign-out", Endpoint: web.Handle(p.signOut)},
		{Method: http.MethodGet, Path: path + "signed-out", Endpoint: web.Handle(p.showSignedOut)},
	}
	if p.Guard.mode == Basic {
		routes = append(routes, web.Route{Method: http.MethodPost, Path: path + "sign-in", Endpoint: web.Handle(p.signIn)})
	}
	for i := range routes {
		routes[i].Guards = inner
	}
	if p.Guard.mode == OIDC {
		routes = append(routes, p.callbackRoute())
	}
	for i := range routes {
		routes[i].NoTenant, routes[i].Uncompressed = true, true // a form has a secret
		routes[i].Guards = append([]echo.MiddlewareFunc{outer}, routes[i].Guards...)
	}
	return routes
}

func (p *Pages) showSignIn(c echo.Context) error {
	to := p.target(c, web.QueryOf(c).Text("to"))
	if p.Guard.mode == OIDC {
		return p.askProvider(c, to)
	}
	return p.showForm(c, http.StatusOK, page.SignIn{To: to})
}

func (p *Pages) showForm(c echo.Context, status int, form page.SignIn) error {
	return p.Show(c, status, "sign-in.html", "signIn.heading", form)
}

// signIn handles the form of Basic. The answer to what was typed wrong is 422 or 429: 401 would have
// to name a way to sign in by headers.
func (p *Pages) signIn(c echo.Context) error {
	if err := p.checkForm(c); err != nil {
		return err
	}
	form := page.SignIn{To: p.target(c, c.FormValue("to")), Name: c.FormValue("name")}
	if err := p.Guard.checkPassword(c.Request().Context(), c.RealIP(), form.Name, c.FormValue("password")); err != nil {
		form.Wrong = describeRefusal(err, form.Name)
		status := http.StatusUnprocessableEntity
		if fault.Is(err, fault.TooManyTries) {
			status = http.StatusTooManyRequests
			web.SetRetryAfter(c.Response().Header(), web.ToFault(err))
		}
		return p.showForm(c, status, form)
	}
	now := time.Now()
	return p.begin(c, session{ID: uuid.New(), Name: form.Name, Began: now, Used: now}, form.To)
}

// describeRefusal says why checkPassword refused a name and a password.
func describeRefusal(err error, name string) texts.Text {
	refused, _ := errors.AsType[*fault.Error](err)
	switch {
	case refused.Code == fault.TooManyTries:
		seconds := int(math.Ceil(refused.RetryAfter.Seconds()))
		return texts.Text{Code: "signIn.tooMany", Values: texts.Values{"seconds": strconv.Itoa(seconds)}}
	case !isUsableName(name):
		return texts.Text{Code: "signIn.nameWrong", Values: texts.Values{"most": strconv.Itoa(schemas.MaxChangeName)}}
	}
	return texts.Text{Code: "signIn.passwordWrong"}
}

// checkForm refuses a form that is none of the service's own pages.
func (p *Pages) checkForm(c echo.Context) error {
	if err := p.Guard.checkOrigin(c.Request()); err != nil {
		return err
	}
	_, err := page.CheckToken(c)
	return err
}

// begin gives a visitor a new session, and goes to the page that was asked for.
func (p *Pages) begin(c echo.Context, s session, to string) error {
	page.RenewToken(c)
	p.Guard.log.InfoContext(c.Request().Context(), "signed in to the staff pages", "by", s.Name, "peer", c.RealIP())
	return p.admit(c, s, to)
}

// admit gives a visitor the cookie of a session, and goes to the page that was asked for.
func (p *Pages) admit(c echo.Context, s session, to string) error {
	p.dropSessions(c)
	if err := p.setSession(c, s); err != nil {
		return err
	}
	return redirect(c, to)
}

// signOut ends the session, for all instances and all copies of its cookie. If that cannot be
// written, the cookie stays, so that a repeat can end it.
func (p *Pages) signOut(c echo.Context) error {
	if err := p.checkForm(c); err != nil {
		return err
	}
	s, err := p.openSession(c)
	if err != nil {
		return err
	}
	if s.ID != uuid.Nil {
		if err := p.SignOuts.SignOut(c.Request().Context(), s.ID, s.Began.Add(p.Guard.limits.Longest+clockSkew)); err != nil {
			return err
		}
		page.SetCookie(c, p.sessionCookie(c.Param(p.Tenant)), "", -time.Second)
	}
	p.dropFlows(c, 0) // another tab that comes back would sign in again
	page.RenewToken(c)
	return redirect(c, p.rootOf(c)+"signed-out")
}

func (p *Pages) showSignedOut(c echo.Context) error {
	if p.Guard.mode == OIDC {
		return p.leaveProvider(c)
	}
	return p.Show(c, http.StatusOK, "notice.html", "signIn.signedOut", page.Notice{
		Text: "signIn.ended", Link: p.linkRoot(c), LinkText: "signIn.again",
	})
}
