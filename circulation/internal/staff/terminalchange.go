package staff

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
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

// byDefault is the option that leaves a choice to the service.
const byDefault = "as usual"

func (p *pages) askTerminal(v *visit) error {
	t, err := p.findTerminal(v)
	if err != nil {
		return err
	}
	return p.showTerminal(v, t, admin.TerminalChange{
		Version: t.Version, Name: t.Name, ServicePointID: t.ServicePointID, Institution: t.Institution, Language: t.Language,
		CharacterSet: t.CharacterSet, LineEnd: t.LineEnd, Enabled: t.IsEnabled(),
	}, nil)
}

// showTerminal shows the form with what was typed, and why it was refused.
func (p *pages) showTerminal(v *visit, t library.Terminal, typed admin.TerminalChange, refusal error) error {
	places, err := p.admin.AllServicePoints(v.ctx())
	if err != nil {
		return err
	}
	none := "Choose"
	if t.ServicePointFromLogin {
		none = "from the login"
	}
	shown := terminalPage{
		Terminal: t, Action: v.path("/machines/" + url.PathEscape(t.ID)), Back: v.path("/machines"), Version: typed.Version,
		Name:        field{Name: "name", Label: "Name", Hint: "Where it stands, for you and for the machine's screen.", Required: true, Value: typed.Name},
		Institution: field{Name: "institution", Label: "Institution", Hint: "The institution id (AO) in its answers. Empty repeats the machine's own.", Value: typed.Institution},
		Place:       newPlaceChoice(places, typed.ServicePointID, none),
		Enabled: menu{Name: "enabled", Label: "May sign in", Value: strconv.FormatBool(typed.Enabled), Options: []option{
			{"true", "yes"}, {"false", "no, it is disabled"},
		}, Hint: "A machine that is disabled is cut off with its next message."},
		Language: menu{Name: "language", Label: "Language", Hint: "Of texts for patrons whose language the machine does not send.",
			Value: typed.Language, Options: []option{{"", byDefault}, {"en", "English"}, {"de", "Deutsch"}, {"es", "Español"}}},
		CharacterSet: menu{Name: "characterSet", Label: "Character set", Value: typed.CharacterSet, Options: []option{
			{"", byDefault + " (CP850)"}, {"cp850", "CP850"}, {"iso-8859-1", "ISO 8859-1"},
			{"windows-1252", "Windows-1252"}, {"utf-8", "UTF-8"},
		}},
		LineEnd: menu{Name: "lineEnd", Label: "End of a message", Value: typed.LineEnd, Options: []option{
			{"", byDefault + " (CR)"}, {"cr", "CR"}, {"crlf", "CR LF"}, {"lf", "LF"},
		}},
	}
	shown.Place.Required = !t.ServicePointFromLogin
	status := http.StatusOK
	if refusal != nil {
		status = http.StatusUnprocessableEntity
		shown.Problems = explainRefusal(refusal, &shown.Name, &shown.Institution)
	}
	return v.show(status, "terminalchange.html", "/machines", "Edit a machine", shown)
}

func (p *pages) changeTerminal(v *visit) error {
	version, err := strconv.Atoi(v.c.FormValue("version"))
	if err != nil {
		return fault.New(fault.Invalid, "The form is not complete. Open the page of the machine again.")
	}
	typed := admin.TerminalChange{
		Version: version, Name: strings.TrimSpace(v.c.FormValue("name")), ServicePointID: v.c.FormValue("place"),
		Institution: strings.TrimSpace(v.c.FormValue("institution")), Language: v.c.FormValue("language"),
		CharacterSet: v.c.FormValue("characterSet"), LineEnd: v.c.FormValue("lineEnd"), Enabled: v.c.FormValue("enabled") == "true",
	}
	err = p.admin.ChangeTerminal(v.ctx(), v.c.Param("terminal"), typed)
	switch {
	case fault.Is(err, fault.Conflict):
		err = fault.New(fault.Conflict, "The machine was changed meanwhile. Open its page again, and look at what changed.")
		fallthrough
	case isTypo(err):
		t, gone := p.findTerminal(v)
		if gone != nil {
			return gone
		}
		return p.showTerminal(v, t, typed, err)
	case err != nil:
		return err
	}
	return v.redirectDone("/machines", "changed")
}

// checkPassword refuses an empty password: for storage it would mean none.
func checkPassword(password string) error {
	if password == "" {
		return fault.Validation(fault.Refusal("", "A password is required.", fault.Parameter{Key: "password"}))
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
		Terminal: t, Action: v.path("/machines/" + url.PathEscape(t.ID) + "/password"), Back: v.path("/machines"), Password: newPasswordField(),
	}
	status := http.StatusOK
	if refusal != nil {
		status = http.StatusUnprocessableEntity
		shown.Problems = explainRefusal(refusal, &shown.Password)
	}
	return v.show(status, "terminalpassword.html", "/machines", "New password", shown)
}

func (p *pages) setPassword(v *visit) error {
	password := v.c.FormValue("password")
	err := checkPassword(password)
	if err == nil {
		err = p.admin.SetTerminalPassword(v.ctx(), v.c.Param("terminal"), password)
	}
	if isTypo(err) || fault.Is(err, fault.Conflict) {
		return p.showPassword(v, err)
	}
	if err != nil {
		return err
	}
	return v.redirectDone("/machines", "password")
}
