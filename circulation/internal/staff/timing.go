package staff

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas/fault"
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
	Reason     reasonField
	Problems   []field
	Sums       sums
}

// timing handles GET /staff/{tenant}/timing.
func (p *Pages) timing(v *visit) error {
	view, err := p.Admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	return p.showTiming(v, http.StatusOK, view, timesOf(view), reasonField{}, nil)
}

// showTiming shows the form with times in it. wrong is what ChangeSettings says
// about them.
func (p *Pages) showTiming(v *visit, status int, view settings.View, t times, reason reasonField, wrong error) error {
	page := timingPage{
		Settings: view, MayChange: v.may(admin.MayChangeSettings), Action: v.path("/timing"), SumsPath: v.path("/timing/sums"),
		Version: cmp.Or(v.FormValue("version"), view.Version),
		InForce: timesInForce(view),
		Reason:  reason,
		Sums:    p.sumsOf(t),
	}
	page.TTL, page.Waits = p.timeFields(page.InForce, t, wrong)
	if page.Reason.Wrong == "" {
		page.Reason.Wrong = wrongTime(wrong, reasonName)
	}
	page.Problems = problems(page.TTL, page.Waits, field{Name: reasonName, Label: "Reason", Wrong: page.Reason.Wrong})
	return v.show(status, "timing.html", "/timing", "Timing", page)
}

// namedTime is a time in force and where it comes from, in words.
type namedTime struct{ Label, Text string }

// timesInForce are the time to live and the waits.
func timesInForce(view settings.View) [2]namedTime {
	ttl := time.Duration(view.LockTTLMs.Value) * time.Millisecond
	return [2]namedTime{
		{ttlLabel, exact(ttl) + ", " + sourceName(view.LockTTLMs.Source)},
		{waitsLabel, waitsText(durations(view.RetryIntervalsMs.Value)) + ", " + sourceName(view.RetryIntervalsMs.Source)},
	}
}

// timeFields are the fields in which both are typed.
func (p *Pages) timeFields(inForce [2]namedTime, t times, wrong error) (ttl, waits field) {
	service := p.Admin.Environment().Settings()
	const inMilliseconds = ", in milliseconds"
	ttl = field{
		Name: ttlField, Label: ttlLabel + inMilliseconds, Value: t.ttl, Wrong: wrongTime(wrong, ttlField),
		Hint: fmt.Sprintf("How long a lock lives when whoever holds it dies.\nIn force: %s.\n%s. Empty means the service's own setting, which is %s.",
			inForce[0].Text, capital(ttlAllowed), exact(service.TTL)),
	}
	waits = field{
		Name: waitsField, Label: waitsLabel + inMilliseconds, Value: t.waits, Rows: 2, Wrong: wrongTime(wrong, waitsField),
		Hint: fmt.Sprintf("One number for each wait, in order, such as 500, 500, 1000.\nIn force: %s.\n%s. "+
			"The word none means one try without waiting. Empty means the service's own setting, which is %s.",
			inForce[1].Text, capital(waitsAllowed), waitsText(append([]time.Duration{}, service.Waits...))),
	}
	return ttl, waits
}

// saveTiming handles POST /staff/{tenant}/timing. With do=sums it shows what the
// times would mean, for who has no script, and changes nothing.
func (p *Pages) saveTiming(v *visit) error {
	view, err := p.Admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	t := times{v.FormValue(ttlField), v.FormValue(waitsField)}
	reason := reasonField{Value: v.FormValue(reasonName)}
	wanted := proposalOf(view) // whether the lock is on stays as it is
	wanted.LockTTLMs, wanted.RetryIntervalsMs = t.typed()
	wanted.Version = cmp.Or(v.FormValue("version"), view.Version)

	_, err = p.parse(wanted) // first, so that all that is wrong is said at once
	if v.FormValue("do") == "sums" {
		return p.showTiming(v, statusOf(err), view, t, reason, err)
	}
	if fit := reason.check(); fit && err == nil {
		if err = p.change(v, wanted, reason.Value); err == nil {
			return v.done("/timing", "timing")
		}
	}
	if err != nil && !fault.Is(err, fault.Invalid) {
		return err
	}
	return p.showTiming(v, http.StatusUnprocessableEntity, view, t, reason, err)
}

func statusOf(err error) int {
	if err != nil {
		return fault.Status(fault.CodeOf(err))
	}
	return http.StatusOK
}

// timingSums handles GET /staff/{tenant}/timing/sums: what the typed times would
// mean, a part of the page.
func (p *Pages) timingSums(v *visit) error {
	var part bytes.Buffer
	t := times{v.QueryParam(ttlField), v.QueryParam(waitsField)}
	if err := p.templates.part(&part, "timing.html", "sums", p.sumsOf(t)); err != nil {
		return err
	}
	return v.HTMLBlob(http.StatusOK, part.Bytes())
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
