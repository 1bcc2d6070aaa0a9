package staff

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// The page Timing: how long the lock lives and how long machines wait for it.

type timingPage struct {
	Settings   settings.View
	MayChange  bool
	Action     string
	SumsPath   string
	Version    string
	InForce    [2]namedTime
	Choices    []shownChoice
	TTL, Waits field
	Reason     page.Reason
	Problems   []field
	Sums       sums
	Accepted   string // the times whose warnings the next save accepts; empty for none
}

// shownChoice is a choice, what it means, and whether its times are in force.
type shownChoice struct {
	choice
	Sums    sums
	InForce bool
	Path    string // fills it into the form
}

func (p *pages) showTiming(v *visit) error {
	view, err := p.admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	t, chosen := findChoice(v.reader, web.QueryOf(v.c).Text("choice"))
	if !chosen {
		t = ownTimes(v.reader, view)
	}
	return p.showTimes(v, http.StatusOK, view, t, page.Reason{}, "")
}

// showTimes shows the form with times in it, and what is wrong with them. If accepted is not empty, it asks once
// more whether to save times with warnings.
func (p *pages) showTimes(v *visit, status int, view settings.View, t times, reason page.Reason, accepted string) error {
	page := timingPage{
		Settings: view, MayChange: v.may(admin.MayChangeSettings), Action: v.path("/timing"), SumsPath: v.path("/timing/sums"),
		Version: cmp.Or(v.c.FormValue("version"), view.Version),
		InForce: v.describeTimes(view),
		Reason:  reason,
		Sums:    p.computeSums(v.reader, t), Accepted: accepted,
	}
	for _, c := range choices {
		page.Choices = append(page.Choices, shownChoice{
			choice: c, Sums: sumUp(v.reader, c.ttl, c.waits, p.admin.Environment().MachinePatience), Path: v.path("/timing") + "?choice=" + c.key + "#reason",
			InForce: view.LockTTLMs.Value == int(c.ttl.Milliseconds()) && slices.Equal(view.Waits(), c.waits),
		})
	}
	page.TTL, page.Waits = v.makeTimeFields(page.InForce, t)
	page.Problems = findProblems(page.TTL, page.Waits, field{Name: reasonName, Label: v.say("reason.label", nil), Wrong: v.reader.Say(page.Reason.Wrong)})
	return v.show(status, "timing.html", "/timing", "nav.timing", page)
}

// namedTime is a time in force and its origin, in words.
type namedTime struct{ Label, Text string }

// describeTimes describes both times in force.
func (v *visit) describeTimes(view settings.View) [2]namedTime {
	name := func(label texts.Code, value string, from settings.Source) namedTime {
		return namedTime{v.say(label, nil), v.say("timing.inForce", texts.Values{"value": value, "source": v.say(nameSource(from), nil)})}
	}
	ttl := time.Duration(view.LockTTLMs.Value) * time.Millisecond
	return [2]namedTime{
		name(ttlLabel, v.reader.Felt(ttl), view.LockTTLMs.Source),
		name(waitsLabel, formatWaits(v.reader, view.Waits()), view.RetryIntervalsMs.Source),
	}
}

// makeTimeFields makes the fields in which both times are typed.
func (v *visit) makeTimeFields(inForce [2]namedTime, t times) (ttl, waits field) {
	r, service := v.reader, v.pages.admin.Environment().Settings()
	_, wrong := t.parse(r)
	ttl = field{
		Name: ttlField, Label: v.say(ttlLabel, nil), Value: t.ttl, Wrong: wrong.ttl,
		Hint: v.say("timing.ttlHint", texts.Values{
			"now": inForce[0].Text, "least": typeTime(r, minTTL), "most": typeTime(r, maxTTL), "default": r.Felt(service.TTL),
		}),
	}
	waits = field{
		Name: waitsField, Label: v.say(waitsLabel, nil), Value: t.waits, Rows: 2, Wrong: wrong.waits,
		Hint: v.say("timing.waitsHint", texts.Values{
			"now": inForce[1].Text, "tries": strconv.Itoa(schemas.MaxRetries), "most": typeTime(r, maxWait), "together": typeTime(r, schemas.MaxLockWaits),
			"default": formatWaits(r, append([]time.Duration{}, service.Waits...)),
		}),
	}
	return ttl, waits
}

// acceptedName is the field with the typed times whose warnings the visitor has seen.
const acceptedName = "accepted"

// saveTiming handles POST /staff/{tenant}/timing. With do=sums it only shows what the
// times would mean; browsers without scripts use that. It saves times with warnings once the visitor has seen them.
func (p *pages) saveTiming(v *visit) error {
	view, err := p.admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	t := times{strings.TrimSpace(v.c.FormValue(ttlField)), strings.TrimSpace(v.c.FormValue(waitsField))}
	reason := page.Reason{Value: v.c.FormValue(reasonName)}
	own, wrong := t.parse(v.reader)
	if v.c.FormValue("do") == "sums" {
		status := http.StatusOK
		if wrong != (wrongTimes{}) {
			status = http.StatusUnprocessableEntity
		}
		return p.showTimes(v, status, view, t, reason, "")
	}
	why, usable := checkReason(&reason) // before the save, so that one page names all problems
	if !usable || wrong != (wrongTimes{}) {
		return p.showTimes(v, http.StatusUnprocessableEntity, view, t, reason, "")
	}
	typed := strings.Join(strings.Fields(t.ttl+" / "+t.waits), " ")
	if len(p.computeSums(v.reader, t).Warnings) > 0 && v.c.FormValue(acceptedName) != typed {
		return p.showTimes(v, http.StatusUnprocessableEntity, view, t, reason, typed)
	}
	own.Enabled = view.Own().Enabled // the switch stays as it is
	err = p.saveSettings(v, settings.Change{Own: own, Version: cmp.Or(v.c.FormValue("version"), view.Version), Reason: why})
	switch {
	case err == nil:
		return v.redirectDone("/timing", "timing")
	case !fault.Is(err, fault.Invalid):
		return err
	}
	if _, refused := findDetail(err, reasonName); refused {
		reason.Wrong = describeReason(reason.Value)
	}
	return p.showTimes(v, http.StatusUnprocessableEntity, view, t, reason, "")
}

// showSums handles GET /staff/{tenant}/timing/sums: the part of the page that says what
// the typed times would mean.
func (p *pages) showSums(v *visit) error {
	t := times{web.QueryOf(v.c).Text(ttlField), web.QueryOf(v.c).Text(waitsField)}
	part, err := p.templates.Render(v.reader, "timing.html", "sums", p.computeSums(v.reader, t))
	if err != nil {
		return err
	}
	return v.c.HTMLBlob(http.StatusOK, part)
}
