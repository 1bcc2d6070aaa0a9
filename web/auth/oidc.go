package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"golang.org/x/oauth2"

	"checkoutlock/config/resolver"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

const (
	// recheckAfter is how long the provider's word counts when a page is loaded. Then the provider is
	// asked again, which lets a person with a session there through without a question.
	recheckAfter = 5 * time.Minute
	// recheckLatest is the same for forms and scripts, which cannot go to the provider and back.
	recheckLatest = 15 * time.Minute
	// providerTimeout bounds a call to the provider.
	providerTimeout = 5 * time.Second
	// callbackPath follows Root.
	callbackPath = "-/signed-in"
)

// provider is the library's single sign-on (OpenID Connect). It is asked for its addresses when the
// first people sign in, so the service starts without it. It is safe for concurrent use.
type provider struct {
	settings OIDCSettings
	client   *http.Client
	known    atomic.Pointer[oidc.Provider]
}

func newProvider(s OIDCSettings) *provider {
	return &provider{settings: s, client: &http.Client{Timeout: providerTimeout, Transport: resolver.NewTransport()}}
}

// find returns the addresses and keys of the provider. Fault: Unavailable.
func (p *provider) find(ctx context.Context) (*oidc.Provider, error) {
	if known := p.known.Load(); known != nil {
		return known, nil
	}
	known, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.settings.Issuer)
	if err == nil {
		err = p.checkKeys(ctx, known)
	}
	if err != nil {
		return nil, errProviderAway(err)
	}
	p.known.Store(known)
	return known, nil
}

// checkKeys returns an error if the keys cannot be fetched. The verifier fetches them when a code is
// spent already, and its error is the one of a bad signature.
func (p *provider) checkKeys(ctx context.Context, known *oidc.Provider) error {
	var at struct {
		Keys string `json:"jwks_uri"`
	}
	_ = known.Claims(&at) // oidc.NewProvider has read the same
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Keys, http.NoBody)
	if err != nil {
		return fmt.Errorf("making the request for the keys: %w", err)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return fmt.Errorf("fetching the keys: %w", err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("fetching the keys: %s", answer.Status)
	}
	return nil
}

func errProviderAway(err error) error {
	return fault.Wrap(errors.Join(page.ErrSignInAway, err), fault.Unavailable, "Your library's sign-in service cannot be reached. Lending goes on; try again later")
}

func (p *provider) configure(known *oidc.Provider, root string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.settings.Client, ClientSecret: p.settings.Secret, Endpoint: known.Endpoint(),
		RedirectURL: p.settings.URL + root + callbackPath, Scopes: append([]string{oidc.ScopeOpenID}, p.settings.Scopes...),
	}
}

// isDue reports whether the provider has to confirm a session. A person who may not sign in any more
// so loses the session within minutes.
func (p *Pages) isDue(c echo.Context, s session) bool {
	if p.Guard.mode != OIDC {
		return false
	}
	latest := recheckLatest
	if isRead(c) && !isByScript(c) {
		latest = recheckAfter
	}
	return time.Since(s.Checked) >= latest
}

// askProvider sends the visitor to the provider with a page that goes there by itself. A redirect
// might follow a form, and the pages' policy for content ends those at other sites.
func (p *Pages) askProvider(c echo.Context, to string) error {
	known, err := p.Guard.provider.find(c.Request().Context())
	if err != nil {
		return err
	}
	f := flow{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Tenant: c.Param(p.Tenant), To: to, Began: time.Now(),
	}
	p.dropFlows(c, maxCookieBytes)
	if err := p.setSealed(c, p.flowCookie(f.State), f, flowTime); err != nil {
		return err
	}
	address := p.Guard.provider.configure(known, p.Root).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier),
		oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(p.Guard.limits.Longest.Seconds()))))
	return p.sendOn(c, "signIn.heading", address, page.Notice{
		Text: "signIn.atProvider", LinkText: "signIn.goThere",
	})
}

// sendOn shows a notice that goes to an address by itself.
func (p *Pages) sendOn(c echo.Context, title texts.Code, address string, n page.Notice) error {
	n.Link = address
	c.Response().Header().Set("Refresh", "0; url="+address)
	return p.Show(c, http.StatusOK, "notice.html", title, n)
}

func (p *Pages) callbackRoute() web.Route {
	var parameters []web.Parameter
	for _, name := range []string{"state", "code", "error", "iss"} {
		parameters = append(parameters, web.Parameter{Name: name, Meaning: "as the provider sends it (OpenID Connect)"})
	}
	return web.Route{
		Method: http.MethodGet, Path: p.Root + callbackPath, Endpoint: web.Handle(p.receive),
		Query: web.Query{Parameters: parameters, Refuse: func(web.Parameter, string) error { return nil }},
	}
}

// receive handles the way back from the provider: it checks what the provider sent and begins the
// session.
func (p *Pages) receive(c echo.Context) error {
	f, cookie, err := p.findFlow(c, web.QueryOf(c).Text("state"))
	if err != nil {
		return err
	}
	if p.Tenant != "" {
		c.SetParamNames(p.Tenant)
		c.SetParamValues(f.Tenant)
	}
	s, err := p.confirm(c, f)
	if fault.Is(err, fault.Unavailable) {
		return err // the page loads itself again, which needs the cookie
	}
	page.SetCookie(c, cookie, "", -time.Second) // it counts once: the provider takes a code only once
	if err != nil {
		p.Guard.log.WarnContext(c.Request().Context(), "a sign-in at the provider was refused", "peer", c.RealIP(), "err", err)
		return err
	}
	// A person who is signed in already keeps the session, so that a sign-out ends all copies of its cookie,
	// and the token of the forms that are open.
	var old session
	name := p.sessionCookie(f.Tenant)
	if p.Guard.unseal(name, page.ReadCookie(c, name), &old) && old.Name == s.Name && !old.isOver(p.Guard.limits, s.Used) {
		s.ID = old.ID
		return p.admit(c, s, f.To)
	}
	return p.begin(c, s, f.To)
}

// confirm returns a session of the person who comes back, by what the provider says. Faults:
// Unauthorized, Unavailable, Forbidden without a group that grants something.
func (p *Pages) confirm(c echo.Context, f flow) (session, error) {
	q := web.QueryOf(c)
	if iss := q.Text("iss"); iss != "" && iss != p.Guard.provider.settings.Issuer {
		return session{}, page.Refuse(fault.Unauthorized, "signIn.otherService", nil)
	}
	if refusal := q.Text("error"); refusal != "" {
		return session{}, page.Refuse(fault.Unauthorized, "signIn.notLetIn", texts.Values{"reason": fault.Shown(refusal)})
	}
	said, err := p.Guard.provider.redeem(c.Request().Context(), q.Text("code"), f, p.Root)
	if err != nil {
		return session{}, err
	}
	return p.Guard.admitClaims(said)
}

// claims is what the provider says about a person.
type claims map[string]any

// redeem exchanges a code for the provider's claims, and checks them. Faults: Unauthorized,
// Unavailable.
func (p *provider) redeem(ctx context.Context, code string, f flow, root string) (claims, error) {
	known, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.configure(known, root).Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < http.StatusInternalServerError {
			return nil, fault.Wrap(err, fault.Unauthorized, "Your library's sign-in service did not confirm this sign-in")
		}
		return nil, errProviderAway(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := known.Verifier(&oidc.Config{ClientID: p.settings.Client}).Verify(ctx, raw)
	if err == nil && subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1 {
		err = errors.New("the nonce is another one")
	}
	var said claims
	if err == nil {
		err = id.Claims(&said)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unauthorized, "What your library's sign-in service sent cannot be trusted")
	}
	return said, nil
}

// admitClaims returns the session of a person. The name is one that the provider gives to one person
// only, if it sends one. Faults: Forbidden without a group that grants something, Unauthorized.
func (g *Guard) admitClaims(said claims) (session, error) {
	now := time.Now()
	s := session{ID: uuid.New(), Began: now, Used: now, Checked: now}
	for _, claim := range []string{"preferred_username", "email", "sub"} {
		name, _ := said[claim].(string)
		if !isUsableName(name) {
			name = ""
		}
		s.Name = cmp.Or(s.Name, name)
	}
	if s.Name == "" {
		return s, page.Refuse(fault.Unauthorized, "signIn.nameless", nil)
	}
	if at, ok := said["auth_time"].(float64); ok {
		s.Began = time.Unix(min(int64(at), now.Unix()), 0)
		if s.isOver(g.limits, now) {
			return s, page.Refuse(fault.Unauthorized, "signIn.tooOld", nil)
		}
	}
	grants := g.provider.settings.grants()
	for _, group := range said.groups(g.provider.settings.GroupsClaim) {
		if _, grants := grants[group]; grants {
			s.Groups = append(s.Groups, group)
		}
	}
	if len(s.Groups) == 0 {
		return s, page.Refuse(fault.Forbidden, "signIn.noGroup", texts.Values{"name": s.Name})
	}
	return s, nil
}

// groups returns the strings of a claim. Dots in its name lead into objects.
func (said claims) groups(path string) []string {
	var found any = map[string]any(said)
	for name := range strings.SplitSeq(path, ".") {
		object, _ := found.(map[string]any)
		found = object[name]
	}
	list, _ := found.([]any)
	var groups []string
	for _, one := range list {
		if group, ok := one.(string); ok {
			groups = append(groups, group)
		}
	}
	return groups
}

// permissionsOf returns what a session may do: with Basic all, else what its groups grant now.
func (g *Guard) permissionsOf(s session) []string {
	if g.mode == Basic {
		return g.granted
	}
	grants := g.provider.settings.grants()
	var all []string
	for _, group := range s.Groups {
		for _, permission := range grants[group] {
			if permission == everything {
				return g.granted
			}
			all = append(all, permission)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// leaveProvider ends the session at the provider too, if it has an address for that. Otherwise the
// next sign-in on this computer would ask nothing.
func (p *Pages) leaveProvider(c echo.Context) error {
	const title = "signIn.signedOut"
	var at struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if known, err := p.Guard.provider.find(c.Request().Context()); err == nil {
		_ = known.Claims(&at) // without one, the session ends here alone
	}
	address, err := url.Parse(at.EndSession)
	if err != nil || at.EndSession == "" {
		return p.Show(c, http.StatusOK, "notice.html", title, page.Notice{Text: "signIn.endedHere", Link: p.linkRoot(c), LinkText: "signIn.again"})
	}
	q := address.Query()
	q.Set("client_id", p.Guard.provider.settings.Client)
	q.Set("post_logout_redirect_uri", p.Guard.provider.settings.URL+p.Root)
	address.RawQuery = q.Encode()
	return p.sendOn(c, title, address.String(), page.Notice{Text: "signIn.endsThere", LinkText: "signIn.goThere"})
}
