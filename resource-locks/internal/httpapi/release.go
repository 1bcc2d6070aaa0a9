package httpapi

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// target names what a forced release ends: a lock by its id, or a claim.
type target struct {
	Namespace, Name string
	Lock, Claim     string // ids
}

var targetParameters = []web.Parameter{
	{Name: "namespace", Meaning: "the namespace of the lock or claim"},
	{Name: "name", Meaning: "the name of the lock"},
	{Name: "lock", Meaning: "the id of the lock"},
	{Name: "claim", Meaning: "the id of the claim"},
}

// releasePage is the data of release.html.
type releasePage struct {
	Target target
	Action string
	Back   string
	Gone   bool
	Reason page.Reason
}

func readTarget(c echo.Context) (target, error) {
	q := web.QueryOf(c)
	t := target{Namespace: q.Text("namespace"), Name: q.Text("name"), Lock: q.Text("lock"), Claim: q.Text("claim")}
	if _, err := uuid.Parse(cmp.Or(t.Claim, t.Lock)); err != nil || (t.Lock != "") == (t.Claim != "") {
		return target{}, fault.New(fault.Malformed, "This address names no lock: it needs lock or claim with a UUID. Open it from the page of locks.")
	}
	return t, nil
}

// askRelease handles GET /locks/release.
func (p *pages) askRelease(c echo.Context) error {
	t, err := readTarget(c)
	if err != nil {
		return err
	}
	return p.showRelease(c, http.StatusOK, releasePage{Target: t})
}

func (p *pages) showRelease(c echo.Context, status int, body releasePage) error {
	body.Action, body.Back = releasePath(body.Target), root(c)
	return p.show(c, status, "release.html", "releaseLock.heading", "", body)
}

// release handles POST /locks/release.
func (p *pages) release(c echo.Context) error {
	if _, err := page.CheckToken(c); err != nil {
		return err
	}
	t, err := readTarget(c)
	if err != nil {
		return err
	}
	reason := page.Reason{Value: c.FormValue("reason")}
	why, err := schemas.ParseChangeReason(reason.Value)
	note := engine.Note{By: callerName(c), Reason: why}
	if err := cmp.Or(err, note.Check()); err != nil {
		reason.Wrong = texts.Text{Code: "release.reasonWrong", Values: texts.Values{"most": strconv.Itoa(engine.MaxReason)}}
		if strings.TrimSpace(reason.Value) == "" {
			reason.Wrong.Code = "release.reasonMissing"
		}
		return p.showRelease(c, http.StatusUnprocessableEntity, releasePage{Target: t, Reason: reason})
	}
	ctx := c.Request().Context()
	if t.Claim != "" {
		err = p.Claims.ForceWithdraw(ctx, t.Namespace, uuid.MustParse(t.Claim), note)
	} else {
		_, err = p.Locks.ForceRelease(ctx, engine.Key{Namespace: t.Namespace, Name: t.Name}, uuid.MustParse(t.Lock), note)
	}
	if fault.Is(err, fault.NotFound) {
		return p.showRelease(c, http.StatusNotFound, releasePage{Gone: true})
	}
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, root(c)+"?done=released")
}

// callerName is the name that a forced release keeps.
func callerName(c echo.Context) string {
	call := okapi.FromContext(c.Request().Context())
	return cmp.Or(call.UserName, call.UserID, "not signed in")
}
