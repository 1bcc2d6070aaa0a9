package staff

import (
	"cmp"
	"net/http"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// The page Feature: whether the lock is on, who changed that, and the switch.

const changesShown = 20

type featurePage struct {
	Settings      settings.View
	Service       bool // what the service's own setting is
	MayTurn       bool
	MaySeeChanges bool
	Switch        string // path of the switch
	Figures       *schemas.Figures
	Changes       []change
	Unread        bool   // the changes could not be read
	Newer         string // paths; empty for none
	Older         string
}

// feature handles GET /staff/{tenant}/.
func (p *Pages) feature(v *visit) error {
	view, err := p.Admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	page := featurePage{
		Settings: view, Service: p.Admin.Environment().Enabled,
		MayTurn: v.may(admin.MayChangeSettings), MaySeeChanges: v.may(admin.MaySeeChanges), Switch: v.path("/switch"),
	}
	if v.may(admin.MaySeeFigures) {
		f, err := p.Admin.Figures(v.ctx(), figureMinutes)
		if err != nil { // the switch must work without them
			p.Log.WarnContext(v.ctx(), "page shown without figures", "err", err)
		} else {
			page.Figures = &f
		}
	}
	if page.MaySeeChanges {
		offset, err := offsetOf(v)
		if err != nil {
			return err
		}
		list, err := p.Admin.Changes(v.ctx(), "", offset, changesShown)
		if err != nil { // of a storage that keeps none yet, say
			p.Log.WarnContext(v.ctx(), "page shown without changes", "err", err)
			page.Unread = true
		} else {
			page.Changes = describeChanges(list.Changes)
			page.Newer, page.Older = neighbours(v, "/", offset, changesShown, offset+len(list.Changes) < list.TotalRecords)
		}
	}
	return v.show(http.StatusOK, "feature.html", "/", "Check-out lock", page)
}

// target is what the switch can be turned to.
type target struct {
	To      string // on, off or default
	On      bool   // what that means
	Heading string
	Button  string
}

func (p *Pages) target(to string) (target, error) {
	switch to {
	case "on":
		return target{to, true, "Turn the check-out lock on?", "Turn on"}, nil
	case "off":
		return target{to, false, "Turn the check-out lock off?", "Turn off"}, nil
	case "default":
		return target{to, p.Admin.Environment().Enabled, "Follow the service's own setting?", "Follow the service"}, nil
	}
	return target{}, fault.New(fault.Malformed, "The switch can be turned to on, off or default, not to %s", fault.Shown(to))
}

type switchPage struct {
	target
	Action  string
	Back    string
	Version string
	Reason  reasonField
	Longest time.Duration // that a machine may wait once the lock is on
}

// reasonField is the field in which people say why.
type reasonField struct {
	Value, Wrong string
}

// check says what is wrong with a reason.
func (r *reasonField) check() bool {
	switch why, err := schemas.ParseChangeReason(r.Value); {
	case err != nil:
		r.Wrong = "The reason " + err.Error() + "."
	case why == "":
		r.Wrong = "Say why, in a few words: the history shows it to your colleagues."
	}
	return r.Wrong == ""
}

// askSwitch handles GET /staff/{tenant}/switch?to=: what would change, and why.
func (p *Pages) askSwitch(v *visit) error {
	return p.showSwitch(v, http.StatusOK, v.QueryParam("to"), "", reasonField{})
}

// showSwitch asks. version is the one that was first shown, so that a change since
// then is a conflict; empty means now.
func (p *Pages) showSwitch(v *visit, status int, to, version string, reason reasonField) error {
	t, err := p.target(to)
	if err != nil {
		return err
	}
	view, err := p.Admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	return v.show(status, "switch.html", "/", t.Heading, switchPage{
		target: t, Action: v.path("/switch"), Back: v.path("/"), Version: cmp.Or(version, view.Version), Reason: reason,
		Longest: time.Duration(view.LongestWaitMs) * time.Millisecond,
	})
}

// doSwitch handles POST /staff/{tenant}/switch.
func (p *Pages) doSwitch(v *visit) error {
	t, err := p.target(v.FormValue("to"))
	if err != nil {
		return err
	}
	reason := reasonField{Value: v.FormValue("reason")}
	if !reason.check() {
		return p.showSwitch(v, http.StatusUnprocessableEntity, t.To, v.FormValue("version"), reason)
	}
	view, err := p.Admin.Settings(v.ctx())
	if err != nil {
		return err
	}
	wanted := proposalOf(view)
	wanted.Enabled = settings.Field[bool]{Value: t.On, Source: settings.FromTenant}
	if t.To == "default" {
		wanted.Enabled.Source = settings.FromEnvironment
	}
	wanted.Version = cmp.Or(v.FormValue("version"), view.Version) // a change since then is a conflict
	if err := p.change(v, wanted, reason.Value); err != nil {
		return err
	}
	return v.done("/", t.To)
}
