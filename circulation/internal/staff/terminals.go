package staff

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
	"checkoutlock/web/texts"
)

// The page Self-check machines: which machines may speak SIP2, what they do, and what staff should
// look at.

type terminalsPage struct {
	Rows     []terminalRow
	Unknown  bool // what the machines do cannot be read
	Notes    []terminalNote
	NoteDays int    // that a note stays
	Shown    bool   // the patrons of the notes are written out
	Toggle   string // path; empty without the permission to see the patrons
	May      bool   // change machines
	Action   string
	Problems []field
	NewID    string // of the machine that the form adds
	Login    field
	Name     field
	Password field
	Place    menu
}

// terminalRow is a machine of the library, or one of a file, of which the page knows what it does.
type terminalRow struct {
	Terminal library.Terminal
	State    schemas.TerminalState
	Filed    bool
	Place    string
	At       string     // the instances with its connections
	Message  texts.Code // of the last one
	Trouble  texts.Code // what the machine says of itself
	Counts   []terminalCount
	Edit     string // paths; empty without the permission
	Password string
}

// terminalCount is what happened N times in the last hour, at least once.
type terminalCount struct {
	Words texts.Code
	N     int
}

// terminalNote is a note as the page shows it.
type terminalNote struct {
	Note    schemas.TerminalNote
	Machine string
	Words   noteWords
}

type noteWords struct{ What, Advice texts.Code }

// menu is a field of a form with options, for the template "menu".
type menu struct {
	Name, Label, Hint string
	Required          bool
	Value             string
	Options           []option
}

type option struct{ Value, Text string }

// messageWords say what a machine sent, by its code.
var messageWords = map[string]texts.Code{
	"01": "machines.message01", "09": "machines.message09", "11": "machines.message11", "15": "machines.message15",
	"17": "machines.message17", "19": "machines.message19", "23": "machines.message23", "25": "machines.message25",
	"29": "machines.message29", "35": "machines.message35", "37": "machines.message37", "63": "machines.message23",
	"65": "machines.message65", "93": "machines.message93", "97": "machines.message97", "99": "machines.message99",
}

var troubleWords = map[string]texts.Code{
	schemas.OutOfPaper: "machines.outOfPaper", schemas.ShuttingDown: "machines.shuttingDown",
}

// wordsOfNotes say what happened, and what to do.
var wordsOfNotes = map[string]noteWords{
	schemas.NoteOffLine:        {"machines.what.offLine", "machines.advice.offLine"},
	schemas.NoteBlockCard:      {"machines.what.blockCard", "machines.advice.blockCard"},
	schemas.NoteCancelled:      {"machines.what.cancelled", "machines.advice.cancelled"},
	schemas.NoteUnknownOutcome: {"machines.what.unknownOutcome", "machines.advice.unknownOutcome"},
}

// newField returns a field with the label and the hint of these codes.
func (v *visit) newField(name string, label, hint texts.Code, value string) field {
	return field{Name: name, Label: v.say(label, nil), Hint: v.say(hint, nil), Required: true, Value: value}
}

func (v *visit) newPasswordField() field {
	return v.newField("password", "machines.password", "machines.passwordHint", "")
}

// newPlaceMenu offers the service points. none is the text of no service point.
func (v *visit) newPlaceMenu(places []library.ServicePoint, chosen string, none texts.Code) menu {
	c := menu{
		Name: "place", Label: v.say("machines.servicePoint", nil), Value: chosen,
		Options: []option{{"", v.say(none, nil)}},
	}
	for _, place := range places {
		c.Options = append(c.Options, option{place.ID, place.Name})
	}
	return c
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
	activity, err := p.admin.TerminalActivity(v.ctx())
	if err != nil {
		p.log.WarnContext(v.ctx(), "page shown without what machines do", "err", err)
	}
	shown := terminalsPage{
		Unknown: err != nil, May: v.may(admin.MayChangeTerminals), Action: v.path("/machines"), NewID: uuid.NewString(),
		Login:    v.newField("login", "machines.login", "machines.loginHint", typed.Login),
		Name:     v.newField("name", "machines.name", "machines.nameHint", typed.Name),
		Password: v.newPasswordField(), Place: v.newPlaceMenu(places, typed.ServicePointID, "machines.choose"),
		NoteDays: schemas.TerminalNoteDays,
	}
	shown.Place.Required = true
	shown.Rows = v.listTerminals(found, activity.Terminals, places)
	v.addNotes(&shown, activity.Notes)
	var status int
	status, shown.Problems = v.explainRefusal(refusal, &shown.Login, &shown.Name, &shown.Password)
	return v.show(status, "terminals.html", "/machines", "machines.heading", shown)
}

// listTerminals joins the machines with what they do. Those of a file follow.
func (v *visit) listTerminals(found []library.Terminal, states []schemas.TerminalState, places []library.ServicePoint) []terminalRow {
	names, byLogin := map[string]string{}, map[string]schemas.TerminalState{}
	for _, place := range places {
		names[place.ID] = place.Name
	}
	for _, s := range states {
		byLogin[strings.ToLower(s.Login)] = s
	}
	var rows []terminalRow
	for _, t := range found {
		key := strings.ToLower(t.Login)
		row := newTerminalRow(t, byLogin[key])
		delete(byLogin, key)
		row.Place = names[strings.ToLower(t.ServicePointID)]
		if v.may(admin.MayChangeTerminals) {
			row.Edit, row.Password = v.path("/machines/"+url.PathEscape(t.ID)), v.path("/machines/"+url.PathEscape(t.ID)+"/password")
		}
		rows = append(rows, row)
	}
	for _, s := range states {
		if byLogin[strings.ToLower(s.Login)].Connections > 0 {
			row := newTerminalRow(library.Terminal{Login: s.Login, Name: s.Login}, s)
			row.Filed = true
			rows = append(rows, row)
		}
	}
	return rows
}

func newTerminalRow(t library.Terminal, s schemas.TerminalState) terminalRow {
	return terminalRow{
		Terminal: t, State: s, At: strings.Join(s.Instances, ", "),
		Message: messageWords[s.LastMessage], Trouble: troubleWords[s.Attention], Counts: listCounts(s.LastHour),
	}
}

func listCounts(n *schemas.TerminalCounts) []terminalCount {
	if n == nil {
		return nil
	}
	return slices.DeleteFunc([]terminalCount{
		{"machines.checkOuts", n.CheckOuts},
		{"machines.refused", n.Refused},
		{"machines.repeated", n.Repeated},
		{"machines.unreadable", n.Unreadable},
		{"machines.wrongLogins", n.WrongLogins},
	}, func(c terminalCount) bool { return c.N == 0 })
}

// addNotes puts the notes on the page. Patrons are masked, unless the visitor may see them and asks for
// it.
func (v *visit) addNotes(page *terminalsPage, notes []schemas.TerminalNote) {
	if v.may(admin.MaySeeCheckOuts) {
		page.Shown, page.Toggle = v.showsPatrons(), v.toggleShown("/machines")
	}
	names := map[string]string{}
	for _, row := range page.Rows {
		names[strings.ToLower(row.Terminal.Login)] = row.Terminal.Name
	}
	for _, n := range notes {
		if !page.Shown && n.UserBarcode != "" {
			n.ItemBarcode = redact.MaskIn(n.ItemBarcode, n.UserBarcode) // a machine may swap them
			n.UserBarcode = redact.Mask(n.UserBarcode)
		}
		page.Notes = append(page.Notes, terminalNote{Note: n, Machine: cmp.Or(names[strings.ToLower(n.Login)], n.Login), Words: wordsOfNotes[n.Kind]})
	}
}

// typoWords say what is wrong with a field, by its name and the code of storage's refusal.
var typoWords = map[string]texts.Code{
	"login -1": "machines.loginTaken", "login pattern": "machines.loginWrong", "login maxLength": "machines.loginWrong",
	"name minLength": "machines.nameWrong", "name maxLength": "machines.nameWrong", "password -1": "machines.passwordWrong",
}

// explainRefusal says what is wrong at the field that the refusal is about, or above all of them. It
// returns the status of the form, which is shown for the first time without a refusal.
func (v *visit) explainRefusal(refusal error, fields ...*field) (status int, problems []field) {
	if refusal == nil {
		return http.StatusOK, nil
	}
	var all []field
	for _, f := range fields {
		d, _ := findDetail(refusal, f.Name)
		f.Wrong = cmp.Or(v.say(typoWords[f.Name+" "+d.Code], texts.Values{"login": f.Value}), d.Message)
		all = append(all, *f)
	}
	if problems = findProblems(all...); len(problems) == 0 {
		problems = []field{{Wrong: fault.Text(refusal)}}
	}
	return http.StatusUnprocessableEntity, problems
}

// isExplained reports whether the form says why it was refused: what was typed is wrong, or the machine is gone.
func isExplained(err error) bool {
	return fault.Is(err, fault.Invalid) || fault.Is(err, fault.NotFound)
}

func (p *pages) addTerminal(v *visit) error {
	typed := admin.NewTerminal{
		ID: v.c.FormValue("id"), Login: strings.TrimSpace(v.c.FormValue("login")), Name: strings.TrimSpace(v.c.FormValue("name")),
		ServicePointID: v.c.FormValue("place"), Password: v.c.FormValue("password"),
	}
	err := v.checkPassword(typed.Password)
	if err == nil {
		err = p.admin.AddTerminal(v.ctx(), typed)
	}
	if isExplained(err) {
		found, readErr := p.admin.Terminals(v.ctx())
		if readErr != nil {
			return readErr
		}
		sentTwice := func(t library.Terminal) bool {
			return t.ID == typed.ID && t.Login == typed.Login && t.Name == typed.Name && strings.EqualFold(t.ServicePointID, typed.ServicePointID)
		}
		if !slices.ContainsFunc(found, sentTwice) {
			return p.showTerminalsWith(v, err, typed)
		}
		err = nil
	}
	if err != nil {
		return err
	}
	return v.redirectDone("/machines", "machine")
}

// findTerminal returns the machine that the path names.
func (p *pages) findTerminal(v *visit) (library.Terminal, error) {
	found, err := p.admin.Terminals(v.ctx())
	if err != nil {
		return library.Terminal{}, err
	}
	at := slices.IndexFunc(found, func(t library.Terminal) bool { return t.ID == v.c.Param("terminal") })
	if at < 0 {
		return library.Terminal{}, fault.New(fault.NotFound, "%s", v.say("machines.gone", nil))
	}
	return found[at], nil
}
