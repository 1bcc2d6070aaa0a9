package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// Kind is a kind of locks as the page names it: those of one front.
type Kind struct {
	Key       string
	Name      texts.Code
	Namespace string // of its flat locks
	Prefix    bool   // Namespace is the beginning of theirs
}

// kindOfClaims is the kind of claims, of all namespaces.
var kindOfClaims = Kind{Key: "paths", Name: "locks.kindPaths"}

// locksPage is the data of locks.html.
type locksPage struct {
	Root         string // path of the page
	Kind, Search string // of the filter; empty is all
	Kinds        []Kind
	Live         string // paths of the stream, and of the same page
	Refresh      string
	Rows         []lockRow
	Releases     []engine.Release
	Events       []engine.Event
	Full         bool // some locks or claims are not shown
}

// lockRow is a flat lock or a claim.
type lockRow struct {
	What, Owner   string
	Kind          texts.Code
	State         texts.Code // of a claim that waits
	Since, Until  time.Time
	Waits         []texts.Text // who waits for it, or asked for it
	Namespace, ID string
	Number        int64  // the fence of a lock, the number of a claim
	Release       string // path; empty without the permission
}

// matches reports whether a part of the row's name or owner is the text.
func (r lockRow) matches(text string) bool {
	return strings.Contains(strings.ToLower(r.What+"\n"+r.Owner), strings.ToLower(text))
}

// errFull ends a walk.
var errFull = errors.New("enough locks")

// showLocks handles GET /locks/.
func (p *pages) showLocks(c echo.Context) error {
	body, err := p.readLocks(c)
	if err != nil {
		return err
	}
	note := texts.Code("")
	if web.QueryOf(c).Text("done") == "released" { // the address has only a key, so a link puts no words on a page
		note = "note.released"
	}
	return p.show(c, http.StatusOK, "locks.html", "nav.locks", note, body)
}

// locksEvery is how often an open page looks for what is new.
const locksEvery = time.Second

// followLocks handles GET /locks/live.
func (p *pages) followLocks(c echo.Context) error {
	reader := page.NewReader(c)
	return p.streams.Follow(c, reader, locksEvery, func() ([]byte, error) {
		body, err := p.readLocks(c)
		if err != nil {
			return nil, err
		}
		return p.templates.Render(reader, "locks.html", "list", body)
	})
}

// readLocks reads what the address asks for.
func (p *pages) readLocks(c echo.Context) (locksPage, error) {
	q := web.QueryOf(c)
	body := locksPage{
		Root: root(c), Kind: q.Text("kind"), Search: strings.TrimSpace(q.Text("search")),
		Kinds: append(slices.Clone(p.Kinds), kindOfClaims), Events: p.Recent.List(),
	}
	if body.Kind != "" && !slices.ContainsFunc(body.Kinds, func(k Kind) bool { return k.Key == body.Kind }) {
		return body, fault.New(fault.Malformed, "There is no kind of locks %s. Choose one from the list.", fault.Shown(body.Kind))
	}
	filter := "?" + url.Values{"kind": {body.Kind}, "search": {body.Search}}.Encode()
	body.Live, body.Refresh = "live"+filter, filter
	ctx := c.Request().Context()
	for _, k := range p.Kinds {
		if body.Kind == "" || body.Kind == k.Key {
			if err := p.addLocks(ctx, &body, k); err != nil {
				return body, err
			}
		}
	}
	if body.Kind == "" || body.Kind == kindOfClaims.Key {
		if err := p.addClaims(ctx, &body); err != nil {
			return body, err
		}
	}
	slices.SortStableFunc(body.Rows, func(a, b lockRow) int { return a.Since.Compare(b.Since) })
	if !p.Guard.May(ctx, MayRelease) {
		for i := range body.Rows {
			body.Rows[i].Release = ""
		}
	}
	var err error
	body.Releases, err = p.Locks.Releases(ctx, releasesShown)
	return body, err
}

// addLocks adds the flat locks of a kind that match, locksShown at most. It reads locksRead at most.
func (p *pages) addLocks(ctx context.Context, body *locksPage, k Kind) error {
	shown, read := 0, 0
	err := p.Locks.Walk(ctx, engine.Filter{Namespace: k.Namespace, Prefix: k.Prefix}, func(l engine.Lock) error {
		if shown == locksShown || read == locksRead {
			body.Full = true
			return errFull
		}
		read++
		row := lockRow{
			What: l.Name, Kind: k.Name, Owner: l.Owner, Since: l.GrantedAt, Until: l.ExpiresAt, Namespace: l.Namespace, ID: l.ID.String(), Number: l.Fence,
			Release: releasePath(target{Namespace: l.Namespace, Name: l.Name, Lock: l.ID.String()}),
		}
		for _, r := range l.Requests {
			row.Waits = append(row.Waits, describeAsker(r))
		}
		if row.matches(body.Search) {
			body.Rows = append(body.Rows, row)
			shown++
		}
		return nil
	})
	if errors.Is(err, errFull) {
		return nil
	}
	return err
}

func describeAsker(r engine.AskedFor) texts.Text {
	name := cmp.Or(r.Name, r.By)
	if r.Message == "" {
		return texts.Text{Code: "locks.askedBy", Values: texts.Values{"name": name}}
	}
	return texts.Text{Code: "locks.asked", Values: texts.Values{"name": name, "message": r.Message}}
}

// addClaims adds the claims that match, and under each the claims that wait for it.
func (p *pages) addClaims(ctx context.Context, body *locksPage) error {
	claims, err := p.Claims.List(ctx, "", claimsShown)
	if err != nil {
		return err
	}
	body.Full = body.Full || len(claims) == claimsShown
	type place struct {
		namespace string
		number    int64
	}
	waits := map[place][]texts.Text{}
	for _, claim := range claims {
		if !claim.Held {
			at := place{claim.Namespace, claim.WaitsFor}
			waits[at] = append(waits[at], texts.Text{Code: "locks.waitsFor", Values: texts.Values{
				"owner": claim.Owner, "paths": engine.FormatResources(claim.Resources),
			}})
		}
	}
	for _, claim := range claims {
		row := lockRow{
			What: engine.FormatResources(claim.Resources), Kind: kindOfClaims.Name, Owner: claim.Owner, Since: claim.QueuedAt, Until: claim.EndsAt,
			Waits: waits[place{claim.Namespace, claim.Number}], Namespace: claim.Namespace, ID: claim.ID.String(), Number: claim.Number,
			Release: releasePath(target{Namespace: claim.Namespace, Claim: claim.ID.String()}),
		}
		if !claim.Held {
			row.State = "locks.eventQueued"
		}
		if row.matches(body.Search) {
			body.Rows = append(body.Rows, row)
		}
	}
	return nil
}

// releasePath is the address of the page that releases a lock or a claim, from its neighbours.
func releasePath(t target) string {
	q := url.Values{}
	for name, value := range map[string]string{"namespace": t.Namespace, "name": t.Name, "lock": t.Lock, "claim": t.Claim} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "release?" + q.Encode()
}

// eventNames are the kinds of events as the page names them.
var eventNames = map[engine.EventKind]texts.Code{
	engine.EventGranted: "locks.eventGranted", engine.EventRenewed: "locks.eventRenewed", engine.EventRefused: "locks.eventRefused",
	engine.EventReleased: "locks.eventReleased", engine.EventExpired: "locks.eventExpired", engine.EventForced: "locks.eventForced",
	engine.EventRequested: "locks.eventRequested", engine.EventQueued: "locks.eventQueued",
}

func nameEvent(kind engine.EventKind) texts.Code { return eventNames[kind] }
