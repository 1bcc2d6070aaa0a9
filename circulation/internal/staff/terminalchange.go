package staff

import (
	"net/url"
	"strconv"
	"strings"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/texts"
)

// The forms that change a machine: its settings, and its password.

type terminalPage struct {
	Terminal library.Terminal
	Action   string
	Back     string
	Problems []field

	Version      int
	Enabled      menu
	Name         field
	Place        menu
	Institution  field
	Language     menu
	CharacterSet menu
	LineEnd      menu
}

type passwordPage struct {
	Terminal library.Terminal
	Action   string
	Back     string
	Problems []field
	Password field
}

func (p *pages) askTerminal(v *visit) error {
	t, err := p.findTerminal(v)
	if err != nil {
		return err
	}
	return p.showTerminal(v, t, readChange(t), nil)
}

// readChange is the change that leaves a machine as it is.
func readChange(t library.Terminal) admin.TerminalChange {
	return admin.TerminalChange{
		Version: t.Version, Name: t.Name, ServicePointID: strings.ToLower(t.ServicePointID), Institution: t.Institution, Language: t.Language,
		CharacterSet: t.CharacterSet, LineEnd: t.LineEnd, Enabled: t.IsEnabled(),
	}
}

// showTerminal shows the form with what was typed, and why it was refused.
func (p *pages) showTerminal(v *visit, t library.Terminal, typed admin.TerminalChange, refusal error) error {
	places, err := p.admin.AllServicePoints(v.ctx())
	if err != nil {
		return err
	}
	none := texts.Code("machines.choose")
	if t.ServicePointFromLogin {
		none = "machines.fromLogin"
	}
	usual := func(value string) option {
		return option{"", v.say("machines.usualValue", texts.Values{"value": value})}
	}
	shown := terminalPage{
		Terminal: t, Action: v.path("/machines/" + url.PathEscape(t.ID)), Back: v.path("/machines"), Version: typed.Version,
		Name:        v.newField("name", "machines.name", "machines.nameHint", typed.Name),
		Institution: v.newField("institution", "machines.institution", "machines.institutionHint", typed.Institution),
		Place:       v.newPlaceMenu(places, typed.ServicePointID, none),
		Enabled: menu{Name: "enabled", Label: v.say("machines.maySignIn", nil), Hint: v.say("machines.enabledHint", nil), Value: strconv.FormatBool(typed.Enabled), Options: []option{
			{"true", v.say("machines.yes", nil)}, {"false", v.say("machines.disabled", nil)},
		}},
		Language: menu{Name: "language", Label: v.say("machines.language", nil), Hint: v.say("machines.languageHint", nil), Value: typed.Language, Options: []option{
			{"", v.say("machines.usual", nil)}, {"en", "English"}, {"de", "Deutsch"}, {"es", "Español"},
		}},
		CharacterSet: menu{Name: "characterSet", Label: v.say("machines.characterSet", nil), Value: typed.CharacterSet, Options: []option{
			usual("CP850"), {"cp850", "CP850"}, {"iso-8859-1", "ISO 8859-1"}, {"windows-1252", "Windows-1252"}, {"utf-8", "UTF-8"},
		}},
		LineEnd: menu{Name: "lineEnd", Label: v.say("machines.lineEnd", nil), Value: typed.LineEnd, Options: []option{
			usual("CR"), {"cr", "CR"}, {"crlf", "CR LF"}, {"lf", "LF"},
		}},
	}
	shown.Institution.Required = false
	shown.Place.Required = !t.ServicePointFromLogin
	var status int
	status, shown.Problems = v.explainRefusal(refusal, &shown.Name, &shown.Institution)
	return v.show(status, "terminalchange.html", "/machines", "machines.change", shown)
}

func (p *pages) changeTerminal(v *visit) error {
	version, err := strconv.Atoi(v.c.FormValue("version"))
	if err != nil {
		return fault.New(fault.Invalid, "%s", v.say("machines.formIncomplete", nil))
	}
	typed := admin.TerminalChange{
		Version: version, Name: strings.TrimSpace(v.c.FormValue("name")), ServicePointID: v.c.FormValue("place"),
		Institution: strings.TrimSpace(v.c.FormValue("institution")), Language: v.c.FormValue("language"),
		CharacterSet: v.c.FormValue("characterSet"), LineEnd: v.c.FormValue("lineEnd"), Enabled: v.c.FormValue("enabled") == "true",
	}
	err = p.admin.ChangeTerminal(v.ctx(), v.c.Param("terminal"), typed)
	if err == nil {
		return v.redirectDone("/machines", "changed")
	}
	conflict := fault.Is(err, fault.Conflict)
	if !conflict && !isExplained(err) {
		return err
	}
	t, gone := p.findTerminal(v)
	if gone != nil {
		return gone
	}
	if conflict {
		stored := readChange(t)
		if stored.Version = typed.Version; stored == typed { // the form was sent twice
			return v.redirectDone("/machines", "changed")
		}
		err = fault.New(fault.Conflict, "%s", v.say("machines.changedMeanwhile", nil))
	}
	return p.showTerminal(v, t, typed, err)
}

// checkPassword refuses an empty password: for storage it would mean none.
func (v *visit) checkPassword(password string) error {
	if password == "" {
		return fault.Validation(fault.Refusal("", v.say("machines.passwordMissing", nil), fault.Parameter{Key: "password"}))
	}
	return nil
}

func (p *pages) askPassword(v *visit) error { return p.showPassword(v, nil) }

func (p *pages) showPassword(v *visit, refusal error) error {
	t, err := p.findTerminal(v)
	if err != nil {
		return err
	}
	shown := passwordPage{
		Terminal: t, Action: v.path("/machines/" + url.PathEscape(t.ID) + "/password"), Back: v.path("/machines"), Password: v.newPasswordField(),
	}
	var status int
	status, shown.Problems = v.explainRefusal(refusal, &shown.Password)
	return v.show(status, "terminalpassword.html", "/machines", "machines.newPassword", shown)
}

func (p *pages) setPassword(v *visit) error {
	password := v.c.FormValue("password")
	err := v.checkPassword(password)
	if err == nil {
		err = p.admin.SetTerminalPassword(v.ctx(), v.c.Param("terminal"), password)
	}
	if isExplained(err) || fault.Is(err, fault.Conflict) {
		return p.showPassword(v, err)
	}
	if err != nil {
		return err
	}
	return v.redirectDone("/machines", "password")
}
