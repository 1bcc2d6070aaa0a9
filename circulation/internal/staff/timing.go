package staff

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
)

// The page Timing: how long the lock lives and how long machines wait for it.

type timingPage struct {
	Settings   settings.View
	MayChange  bool
	Action     string
	SumsPath   string
	Version    string
	InForce    [2]namedTime
	TTL, Waits field
	Reason     page.Reason
	Problems   []field
	Sums       sums
}

func (p *pages) showTiming(v *visit) error {
	view, err := p.admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	return p.showTimes(v, http.StatusOK, view, ownTimes(view), page.Reason{})
}

// showTimes shows the form with times in it, and what is wrong with them.
func (p *pages) showTimes(v *visit, status int, view settings.View, t times, reason page.Reason) error {
	page := timingPage{
		Settings: view, MayChange: v.may(admin.MayChangeSettings), Action: v.path("/timing"), SumsPath: v.path("/timing/sums"),
		Version: cmp.Or(v.c.FormValue("version"), view.Version),
		InForce: describeTimes(view),
		Reason:  reason,
		Sums:    p.computeSums(t),
	}
	page.TTL, page.Waits = p.makeTimeFields(page.InForce, t)
	page.Problems = findProblems(page.TTL, page.Waits, field{Name: reasonName, Label: "Reason", Wrong: page.Reason.Wrong})
	return v.show(status, "timing.html", "/timing", "Timing", page)
}

// namedTime is a time in force and its origin, in words.
type namedTime struct{ Label, Text string }

// describeTimes describes the time to live and the waits in force.
func describeTimes(view settings.View) [2]namedTime {
	ttl := time.Duration(view.LockTTLMs.Value) * time.Millisecond
	return [2]namedTime{
		{ttlLabel, exact(ttl) + ", " + nameSource(view.LockTTLMs.Source)},
		{waitsLabel, formatWaits(view.Waits()) + ", " + nameSource(view.RetryIntervalsMs.Source)},
	}
}

// makeTimeFields makes the fields in which both times are typed.
func (p *pages) makeTimeFields(inForce [2]namedTime, t times) (ttl, waits field) {
	service := p.admin.Environment().Settings()
	_, wrong := t.parse()
	const inMilliseconds = ", in milliseconds"
	ttl = field{
		Name: ttlField, Label: ttlLabel + inMilliseconds, Value: t.ttl, Wrong: wrong.ttl,
		Hint: fmt.Sprintf("How long a lock lives when its holder dies.\nIn force: %s.\n%s. Empty means the service's own setting, which is %s.",
			inForce[0].Text, capitalize(ttlAllowed), exact(service.TTL)),
	}
	waits = field{
		Name: waitsField, Label: waitsLabel + inMilliseconds, Value: t.waits, Rows: 2, Wrong: wrong.waits,
		Hint: fmt.Sprintf("One number for each wait, in order, such as 500, 500, 1000.\nIn force: %s.\n%s. "+
			"The word none means one try without waiting. Empty means the service's own setting, which is %s.",
			inForce[1].Text, capitalize(waitsAllowed), formatWaits(append([]time.Duration{}, service.Waits...))),
	}
	return ttl, waits
}

// saveTiming handles POST /staff/{tenant}/timing. With do=sums it only shows what the
// times would mean; browsers without scripts use that.
func (p *pages) saveTiming(v *visit) error {
	view, err := p.admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	t := times{v.c.FormValue(ttlField), v.c.FormValue(waitsField)}
	reason := page.Reason{Value: v.c.FormValue(reasonName)}
	own, wrong := t.parse()
	if v.c.FormValue("do") == "sums" {
		status := http.StatusOK
		if wrong != (wrongTimes{}) {
			status = http.StatusUnprocessableEntity
		}
		return p.showTimes(v, status, view, t, reason)
	}
	why, usable := checkReason(&reason) // before the save, so that one page names all problems
	if !usable || wrong != (wrongTimes{}) {
		return p.showTimes(v, http.StatusUnprocessableEntity, view, t, reason)
	}
	own.Enabled = view.Own().Enabled // the switch stays as it is
	err = p.saveSettings(v, settings.Change{Own: own, Version: cmp.Or(v.c.FormValue("version"), view.Version), Reason: why})
	switch {
	case err == nil:
		return v.redirectDone("/timing", "timing")
	case !fault.Is(err, fault.Invalid):
		return err
	}
	if detail, refused := findDetail(err, reasonName); refused {
		reason.Wrong = capitalize(detail.Message) + "."
	}
	return p.showTimes(v, http.StatusUnprocessableEntity, view, t, reason)
}

// showSums handles GET /staff/{tenant}/timing/sums: the part of the page that says what
// the typed times would mean.
func (p *pages) showSums(v *visit) error {
	t := times{web.QueryOf(v.c).Text(ttlField), web.QueryOf(v.c).Text(waitsField)}
	part, err := p.templates.Render("timing.html", "sums", p.computeSums(t))
	if err != nil {
		return err
	}
	return v.c.HTMLBlob(http.StatusOK, part)
}

func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
