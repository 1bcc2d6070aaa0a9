package staff

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
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
	At       string // the instances with its connections
	Message  string // the last one, in words
	Trouble  string // what the machine says of itself, in words
	Edit     string // paths; empty without the permission
	Password string
}

// terminalNote is a note as the page shows it.
type terminalNote struct {
	Note    schemas.TerminalNote
	Machine string
	Words   noteWords
}

type noteWords struct{ What, Advice string }

// menu is a field of a form with options, for the template "menu".
type menu struct {
	Name, Label, Hint string
	Required          bool
	Value             string
	Options           []option
}

type option struct{ Value, Text string }

// messageWords say what a machine sent, by its code.
var messageWords = map[string]string{
	"01": "card to be blocked", "09": "check-in", "11": "check-out", "15": "request", "17": "question about an item",
	"19": "properties of an item", "23": "question about a patron", "25": "card to be released", "29": "renewal",
	"35": "end of a visit", "37": "payment", "63": "question about a patron", "65": "renewal of all loans",
	"93": "login", "97": "answer to be sent again", "99": "status",
}

var troubleWords = map[string]string{
	schemas.OutOfPaper: "It is out of paper.", schemas.ShuttingDown: "It is shutting down.",
}

// wordsOfNotes say what happened, and what to do.
var wordsOfNotes = map[string]noteWords{
	schemas.NoteOffLine:        {"Taken off-line, not lent", "The patron has the item without a loan. Lend it at the desk, or ask for it."},
	schemas.NoteBlockCard:      {"Card to be blocked", "The machine wants the card to be blocked. Nothing was changed: look for the card, and block the patron if need be."},
	schemas.NoteCancelled:      {"Check-out taken back", "The machine could not unlock the item. The loan stays until the item is returned at the desk."},
	schemas.NoteUnknownOutcome: {"Outcome not known", "The patron was sent to you without the item. Look whether the loan exists."},
}

func newPasswordField() field {
	const hint = "From 8 to 72 characters. It is shown nowhere later, so enter it at the machine now."
	return field{Name: "password", Label: "Password", Hint: hint, Required: true}
}

// newPlaceChoice offers the service points. none is the text of no service point.
func newPlaceChoice(places []library.ServicePoint, chosen, none string) menu {
	c := menu{Name: "place", Label: "Service point", Value: chosen, Options: []option{{"", none}}}
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
		Unknown: err != nil, May: v.may(admin.MayChangeTerminals), Action: v.path("/machines"),
		Login:    field{Name: "login", Label: "Login", Hint: "As it is set at the machine, without blanks and @.", Required: true, Value: typed.Login},
		Name:     field{Name: "name", Label: "Name", Hint: "Where it stands, for you and for the machine's screen.", Required: true, Value: typed.Name},
		Password: newPasswordField(), Place: newPlaceChoice(places, typed.ServicePointID, "Choose"),
		NoteDays: schemas.TerminalNoteDays,
	}
	shown.Place.Required = true
	shown.Rows = v.listTerminals(found, activity.Terminals, places)
	v.addNotes(&shown, activity.Notes)
	status := http.StatusOK
	if refusal != nil {
		status = http.StatusUnprocessableEntity
		shown.Problems = explainRefusal(refusal, &shown.Login, &shown.Name, &shown.Password)
	}
	return v.show(status, "terminals.html", "/machines", "Self-check machines", shown)
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
		row.Place = names[t.ServicePointID]
		if v.may(admin.MayChangeTerminals) {
			row.Edit, row.Password = v.path("/machines/"+url.PathEscape(t.ID)), v.path("/machines/"+url.PathEscape(t.ID)+"/password")
		}
		rows = append(rows, row)
	}
	for _, s := range states {
		if filed, left := byLogin[strings.ToLower(s.Login)]; left && filed.Connections > 0 {
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
		Message: cmp.Or(messageWords[s.LastMessage], s.LastMessage), Trouble: troubleWords[s.Attention],
	}
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

// findTerminal returns the machine that the path names.
func (p *pages) findTerminal(v *visit) (library.Terminal, error) {
	found, err := p.admin.Terminals(v.ctx())
	if err != nil {
		return library.Terminal{}, err
	}
	at := slices.IndexFunc(found, func(t library.Terminal) bool { return t.ID == v.c.Param("terminal") })
	if at < 0 {
		return library.Terminal{}, fault.New(fault.NotFound, "This machine is not there any more.")
	}
	return found[at], nil
}
