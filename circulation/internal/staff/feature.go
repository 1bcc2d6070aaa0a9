package staff

import (
	"cmp"
	"net/http"
	"reflect"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// The page On / off: whether the lock is on, who changed that, and the switch.

const changesShown = 20

type featurePage struct {
	Settings      settings.View
	Default       bool     // whether the lock is on by default
	Warnings      []string // of the times in force
	MayTurn       bool
	MaySeeChanges bool
	Switch        string // paths
	Timing        string
	Figures       *schemas.Figures
	Trust         *trust
	Drill         string // path; empty for none
	Uncounted     int    // item limits that count nothing
	Rules         string // path
	Changes       []change
	Unread        bool   // the changes could not be read
	Newer         string // paths; empty for none
	Older         string
}

// showFeature handles GET /staff/{tenant}/. It shows the switch even if the figures or
// the changes cannot be read.
func (p *pages) showFeature(v *visit) error {
	view, err := p.admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	page := featurePage{
		Settings: view, Default: p.admin.Environment().Enabled,
		MayTurn: v.may(admin.MayChangeSettings), MaySeeChanges: v.may(admin.MaySeeChanges), Switch: v.path("/switch"), Timing: v.path("/timing"),
	}
	if view.Enabled.Value {
		page.Warnings = sumUp(v.reader, time.Duration(view.LockTTLMs.Value)*time.Millisecond, view.Waits(), p.admin.Environment().MachinePatience).Warnings
	}
	if v.may(admin.MaySeeFigures) {
		f, err := p.admin.Figures(v.ctx(), schemas.FigureFilter{Minutes: spans[0].Minutes, Bucket: spans[0].Bucket})
		if err != nil {
			p.log.WarnContext(v.ctx(), "page shown without figures", "err", err)
		} else {
			page.Figures = &f
		}
	}
	page.Trust = p.reviewTrust(v)
	if p.drills != nil && v.may(admin.MayDrill) {
		page.Drill = v.path("/drill")
	}
	if v.may(admin.MaySeeRules) {
		page.Rules = v.path("/rules")
		if page.Uncounted, err = p.admin.CountUncounted(v.ctx()); err != nil {
			p.log.WarnContext(v.ctx(), "page shown without the limits that count nothing", "err", err)
		}
	}
	if page.MaySeeChanges {
		offset := web.QueryOf(v.c).Integer("offset")
		list, err := p.admin.LockChanges(v.ctx(), "", offset, changesShown)
		if err != nil {
			p.log.WarnContext(v.ctx(), "page shown without changes", "err", err)
			page.Unread = true
		} else {
			page.Changes = v.describeChanges(list.Changes)
			page.Newer, page.Older = v.linkNeighbours("/", offset, changesShown, offset+len(list.Changes) < list.TotalRecords)
		}
	}
	return v.show(http.StatusOK, "feature.html", "/", "frame.brand", page)
}

// target is a position of the switch.
type target struct {
	To      string // on, off or default
	On      bool   // whether the lock is on then
	Heading texts.Code
	Button  texts.Code
}

func (p *pages) parseTarget(to string) (target, error) {
	switch to {
	case "on":
		return target{to, true, "switch.turnOn", "switch.buttonOn"}, nil
	case "off":
		return target{to, false, "switch.turnOff", "switch.buttonOff"}, nil
	case "default":
		return target{to, p.admin.Environment().Enabled, "switch.toDefault", "switch.buttonDefault"}, nil
	}
	return target{}, fault.New(fault.Malformed, "The switch can be turned to on, off or default, not to %s", fault.Shown(to))
}

type switchPage struct {
	Target  target
	Action  string
	Back    string
	Version string
	Reason  page.Reason
	Longest time.Duration // that a machine may wait once the lock is on
}

// askSwitch handles GET /staff/{tenant}/switch?to=: what would change, and why.
func (p *pages) askSwitch(v *visit) error {
	return p.showSwitch(v, http.StatusOK, web.QueryOf(v.c).Text("to"), "", page.Reason{})
}

// showSwitch asks for confirmation. version is the version that the visitor saw first,
// so that a later change is a conflict; empty means the current one.
func (p *pages) showSwitch(v *visit, status int, to, version string, reason page.Reason) error {
	t, err := p.parseTarget(to)
	if err != nil {
		return err
	}
	view, err := p.admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	return v.show(status, "switch.html", "/", t.Heading, switchPage{
		Target: t, Action: v.path("/switch") + "?to=" + t.To, Back: v.path("/"), Version: cmp.Or(version, view.Version), Reason: reason,
		Longest: time.Duration(view.LongestWaitMs) * time.Millisecond,
	})
}

func (p *pages) turnSwitch(v *visit) error {
	t, err := p.parseTarget(v.c.FormValue("to"))
	if err != nil {
		return err
	}
	reason := page.Reason{Value: v.c.FormValue("reason")}
	why, usable := checkReason(&reason)
	if !usable {
		return p.showSwitch(v, http.StatusUnprocessableEntity, t.To, v.c.FormValue("version"), reason)
	}
	view, err := p.admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	change := settings.Change{Own: view.Own(), Version: cmp.Or(v.c.FormValue("version"), view.Version), Reason: why}
	change.Own.Enabled = &t.On
	if t.To == "default" {
		change.Own.Enabled = nil
	}
	if err := p.saveSettings(v, change); err != nil {
		return err
	}
	return v.redirectDone("/", t.To)
}

// saveSettings writes the settings. It succeeds if the wanted settings are in force already, because
// a visitor may send a form twice. Fault: Conflict if other settings were saved since the change's
// version.
func (p *pages) saveSettings(v *visit, change settings.Change) error {
	_, err := p.admin.ChangeSettings(v.ctx(), change)
	if !fault.Is(err, fault.Conflict) {
		return err
	}
	view, readErr := p.admin.Settings(v.ctx())
	if readErr == nil && view.Problem == "" && reflect.DeepEqual(view.Own(), change.Own) {
		return nil
	}
	return fault.Wrap(err, fault.Conflict, "The settings were changed since you opened the page. Nothing of yours was saved: look at them again and repeat your change.")
}
