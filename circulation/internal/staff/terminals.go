package staff

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
)

// The page Self-check machines: which machines may speak SIP2, and a form for each change.

type terminalsPage struct {
	Rows     []terminalRow
	May      bool // change them
	Action   string
	Problems []field
	Login    field
	Name     field
	Password field
	Places   []library.ServicePoint
	Place    string // the chosen one
}

type terminalRow struct {
	library.Terminal
	Place    string
	Password string // path of the page that sets it; empty without the permission
}

type passwordPage struct {
	Terminal library.Terminal
	Action   string
	Back     string
	Problems []field
	Password field
}

func newPasswordField() field {
	const hint = "From 8 to 72 characters. It is shown nowhere later, so enter it at the machine now."
	return field{Name: "password", Label: "Password", Hint: hint, Required: true}
}

func (p *pages) showTerminals(v *visit) error {
	return p.showTerminalsWith(v, nil, admin.NewTerminal{})
}

// showTerminalsWith shows the page with what was typed, and why it was refused. It never repeats a
// password.
func (p *pages) showTerminalsWith(v *visit, refusal error, typed admin.NewTerminal) error {
	found, err := p.admin.Terminals(v.ctx())
	if err != nil {
		return err
	}
	places, err := p.admin.AllServicePoints(v.ctx())
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, place := range places {
		names[place.ID] = place.Name
	}
	shown := terminalsPage{
		May: v.may(admin.MayChangeTerminals), Action: v.path("/machines"), Places: places, Place: typed.ServicePointID,
		Login:    field{Name: "login", Label: "Login", Hint: "As it is set at the machine, without blanks and @.", Required: true, Value: typed.Login},
		Name:     field{Name: "name", Label: "Name", Hint: "Where it stands, for you and for the machine's screen.", Required: true, Value: typed.Name},
		Password: newPasswordField(),
	}
	for _, t := range found {
		row := terminalRow{Terminal: t, Place: names[t.ServicePointID]}
		if shown.May {
			row.Password = v.path("/machines/" + url.PathEscape(t.ID) + "/password")
		}
		shown.Rows = append(shown.Rows, row)
	}
	status := http.StatusOK
	if refusal != nil {
		status = http.StatusUnprocessableEntity
		shown.Problems = explainRefusal(refusal, &shown.Login, &shown.Name, &shown.Password)
	}
	return v.show(status, "terminals.html", "/machines", "Self-check machines", shown)
}

// explainRefusal puts storage's reason at the field that it is about, or above all of them.
func explainRefusal(refusal error, fields ...*field) []field {
	var all []field
	for _, f := range fields {
		if d, ok := findDetail(refusal, f.Name); ok {
			f.Wrong = d.Message
		}
		all = append(all, *f)
	}
	if wrong := findProblems(all...); len(wrong) > 0 {
		return wrong
	}
	return []field{{Wrong: fault.Text(refusal)}}
}

// isTypo reports whether what was typed is the reason of a refusal.
func isTypo(err error) bool { return fault.Is(err, fault.Invalid) }

func (p *pages) addTerminal(v *visit) error {
	typed := admin.NewTerminal{
		Login: strings.TrimSpace(v.c.FormValue("login")), Name: strings.TrimSpace(v.c.FormValue("name")),
		ServicePointID: v.c.FormValue("place"), Password: v.c.FormValue("password"),
	}
	err := checkPassword(typed.Password)
	if err == nil {
		err = p.admin.AddTerminal(v.ctx(), typed)
	}
	if isTypo(err) {
		return p.showTerminalsWith(v, err, typed)
	}
	if err != nil {
		return err
	}
	return v.redirectDone("/machines", "machine")
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
	found, err := p.admin.Terminals(v.ctx())
	if err != nil {
		return err
	}
	id := v.c.Param("terminal")
	at := slices.IndexFunc(found, func(t library.Terminal) bool { return t.ID == id })
	if at < 0 {
		return fault.New(fault.NotFound, "This machine is not there any more.")
	}
	shown := passwordPage{
		Terminal: found[at], Action: v.path("/machines/" + url.PathEscape(id) + "/password"), Back: v.path("/machines"), Password: newPasswordField(),
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
