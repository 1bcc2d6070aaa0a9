package staff_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	records "checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/staff"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
)

// machines is an Admin of self-check machines.
type machines struct {
	staff.Admin
	list    []records.Terminal
	refusal error // of a change
	added   []admin.NewTerminal
	set     []string // terminal and password
	changed []admin.TerminalChange

	activity schemas.TerminalActivity
	unknown  error // of the activity
}

func (m *machines) Terminals(context.Context) ([]records.Terminal, error) { return m.list, nil }

func (m *machines) AllServicePoints(context.Context) ([]records.ServicePoint, error) {
	return []records.ServicePoint{{ID: heldID, Name: "Front <desk>"}, {ID: benID, Name: "Annex"}}, nil
}

func (m *machines) AddTerminal(_ context.Context, t admin.NewTerminal) error {
	m.added = append(m.added, t)
	return m.refusal
}

func (m *machines) SetTerminalPassword(_ context.Context, id, password string) error {
	m.set = append(m.set, id+" "+password)
	return m.refusal
}

func (m *machines) ChangeTerminal(_ context.Context, _ string, change admin.TerminalChange) error {
	m.changed = append(m.changed, change)
	return m.refusal
}

func (m *machines) TerminalActivity(context.Context) (schemas.TerminalActivity, error) {
	return m.activity, m.unknown
}

const machinesPath = "/staff/diku/machines"

func TestTerminalsPage_ListsMachines(t *testing.T) {
	t.Parallel()
	no := false
	v := visit(t, &library{Admin: &machines{list: []records.Terminal{
		{ID: annID, Name: "Hall <1>", Login: "desk-1", ServicePointID: strings.ToUpper(heldID), HasPassword: true},
		{ID: benID, Name: "Annex 2", Login: "desk-2", ServicePointID: newID},
		{ID: newID, Name: "Cellar", Login: "desk-3", ServicePointFromLogin: true, HasPassword: true, Enabled: &no},
	}}})
	p := v.get(t, machinesPath)
	p.want(t, http.StatusOK, "Hall <1> desk-1 Front <desk> yes no – – Edit New password",
		"Annex 2 desk-2 not found no, it has no password", "Cellar desk-3 from the login no, it is disabled",
		"Nothing needs to be looked at.")
	p.has(t, `href="`+machinesPath+"/"+annID+`"`, `href="`+machinesPath+"/"+annID+`/password"`,
		`<option value="`+heldID+`">Front &lt;desk&gt;</option>`)
	p.lacks(t, "No machine is known yet")
	visit(t, &library{Admin: &machines{}}).get(t, machinesPath).want(t, http.StatusOK, "No machine is known yet.")
}

func TestTerminalsPage_AddsAMachine(t *testing.T) {
	t.Parallel()
	m := &machines{}
	v := visit(t, &library{Admin: m})
	form := func(password string) url.Values {
		return url.Values{"login": {" desk-1 "}, "name": {"Hall"}, "place": {heldID}, "password": {password}}
	}
	v.get(t, machinesPath).has(t, `name="login"`, `name="name"`, `name="place" required`, `name="password"`)
	p := v.post(t, machinesPath, form("right-secret"))
	if got := p.header.Get("Location"); p.status != http.StatusSeeOther || got != machinesPath+"?done=machine" {
		t.Fatalf("got %d, Location %q", p.status, got)
	}
	want := admin.NewTerminal{Login: "desk-1", Name: "Hall", ServicePointID: heldID, Password: "right-secret"}
	if len(m.added) != 1 || m.added[0] != want {
		t.Errorf("added %+v, want %+v", m.added, want)
	}
	v.get(t, machinesPath+"?done=machine").want(t, http.StatusOK, "The machine was added.")

	v.post(t, machinesPath, form("")).want(t, http.StatusUnprocessableEntity, "Password : A password is required.")
	if len(m.added) != 1 {
		t.Errorf("a machine without a password was added: %+v", m.added)
	}
	m.refusal = fault.Validation(fault.TypedDetail("pattern", "it breaks a rule", fault.Param("login", "desk 1")))
	v.post(t, machinesPath, form("right-secret")).want(t, http.StatusUnprocessableEntity, "Login : Use 1 to 100 letters")
	m.refusal = fault.StorageRefusal("login value already exists in table x: desk-1", fault.Param("login", "desk-1"))
	p = v.post(t, machinesPath, form("right-secret"))
	p.want(t, http.StatusUnprocessableEntity, "Login : Another machine has the login desk-1.")
	p.has(t, `value="desk-1"`, `<option value="`+heldID+`" selected>`)
	p.lacks(t, "right-secret")
	m.refusal = fault.StorageRefusal("the record is too odd")
	v.post(t, machinesPath, form("right-secret")).want(t, http.StatusUnprocessableEntity, "the record is too odd")
	m.refusal = fault.New(fault.Unavailable, "Storage was not reached")
	p = v.post(t, machinesPath, form("right-secret"))
	p.want(t, http.StatusServiceUnavailable)
	p.lacks(t, "right-secret")
}

// A visitor may send the form twice, or go back to it and add another machine.
func TestTerminalsPage_AddsAMachineOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		id, login, name string
		status          int
	}{
		"sent twice":      {id: annID, login: "desk-1", name: "Hall", status: http.StatusSeeOther},
		"another login":   {id: annID, login: "desk-2", name: "Hall", status: http.StatusUnprocessableEntity},
		"another name":    {id: annID, login: "desk-1", name: "Annex", status: http.StatusUnprocessableEntity},
		"another's login": {id: benID, login: "desk-1", name: "Hall", status: http.StatusUnprocessableEntity},
		"without an id":   {login: "desk-1", name: "Hall", status: http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &machines{list: []records.Terminal{{ID: annID, Name: "Hall", Login: "desk-1", ServicePointID: heldID}}}
			m.refusal = fault.StorageRefusal("value already exists", fault.Param("login", tt.login))
			p := visit(t, &library{Admin: m}).post(t, machinesPath, url.Values{
				"id": {tt.id}, "login": {tt.login}, "name": {tt.name}, "place": {heldID}, "password": {"right-secret"},
			})
			if p.status != tt.status || m.added[0].ID != tt.id {
				t.Errorf("got %d for %+v, want %d", p.status, m.added, tt.status)
			}
			if p.status != http.StatusSeeOther && !newMachine.MatchString(p.raw) {
				t.Error("the form has no new id")
			}
		})
	}
}

var newMachine = regexp.MustCompile(`name="id" value="[0-9a-f-]{36}"`)

func TestTerminalsPage_SetsAPassword(t *testing.T) {
	t.Parallel()
	m := &machines{list: []records.Terminal{{ID: annID, Name: "Hall", Login: "desk-1"}}}
	v := visit(t, &library{Admin: m})
	path := machinesPath + "/" + annID + "/password"
	v.get(t, path).want(t, http.StatusOK, "New password for Hall", "desk-1")
	v.get(t, strings.Replace(path, annID, benID, 1)).want(t, http.StatusNotFound, "This machine is not there any more.")
	p := v.post(t, path, url.Values{"password": {"next-secret"}})
	if got := p.header.Get("Location"); p.status != http.StatusSeeOther || got != machinesPath+"?done=password" {
		t.Fatalf("got %d, Location %q", p.status, got)
	}
	if len(m.set) != 1 || m.set[0] != annID+" next-secret" {
		t.Errorf("set %q", m.set)
	}
	v.post(t, path, url.Values{}).want(t, http.StatusUnprocessableEntity, "A password is required.")
	for want, refusal := range map[string]error{
		"from 8 to 72 characters":  fault.StorageRefusal("it must have 8 to 72 bytes", fault.Param("password", "(hidden)")),
		"It was changed meanwhile": fault.New(fault.Conflict, "It was changed meanwhile"),
	} {
		m.refusal = refusal
		p := v.post(t, path, url.Values{"password": {"next-secret"}})
		p.want(t, http.StatusUnprocessableEntity, want)
		p.lacks(t, "next-secret")
	}
}

func TestTerminalsPage_ShowsWhatMachinesDo(t *testing.T) {
	t.Parallel()
	m := &machines{list: []records.Terminal{{ID: annID, Name: "Hall", Login: "Desk-1", HasPassword: true}}}
	m.activity.Terminals = []schemas.TerminalState{
		{
			Login: "desk-1", Connections: 2, Address: "10.1.2.3", ConnectedDate: "2026-03-01T09:00:00.000+00:00",
			LastMessage: "11", LastDate: "2026-03-01T10:00:00.000+00:00",
			LastHour:  &schemas.TerminalCounts{CheckOuts: 1200, Refused: 4, Repeated: 3, Unreadable: 2, WrongLogins: 1},
			Instances: []string{"one", "two"}, Attention: schemas.OutOfPaper,
		},
		{
			Login: "filed", Connections: 1, Address: "10.1.2.4", Instances: []string{"one"},
			LastHour: &schemas.TerminalCounts{Refused: 1},
		},
		{Login: "gone"},
	}
	v := visit(t, &library{Admin: m})
	p := v.get(t, machinesPath)
	p.want(t, http.StatusOK, "since 1 Mar 2026", "from 10.1.2.3, at one, two", "2 connections", "check-out",
		"! It is out of paper. 1200 lent or renewed 4 refused 3 sent again 2 unreadable 1 wrong password",
		"filed filed – yes, by a file since", "from 10.1.2.4, at one – 1 refused –")
	p.lacks(t, "gone", "<code>desk-1</code>")
	m.unknown = fault.New(fault.Unavailable, "down")
	v.get(t, machinesPath).want(t, http.StatusOK, "What the machines do could not be read.", "Hall Desk-1")
}

func TestTerminalsPage_ListsNotesForStaff(t *testing.T) {
	t.Parallel()
	const card = "P-12345678"
	m := &machines{list: []records.Terminal{{ID: annID, Name: "Hall", Login: "desk-1"}}}
	m.activity.Notes = []schemas.TerminalNote{
		{Login: "desk-1", Kind: schemas.NoteOffLine, Code: "ITEM_NOT_LOANABLE", UserBarcode: card, ItemBarcode: "B-1"},
		{Login: "desk-9", Kind: schemas.NoteUnknownOutcome, LoanID: heldID, UserBarcode: card, ItemBarcode: card},
		{Login: "desk-1", Kind: schemas.NoteBlockCard, UserBarcode: card},
		{Login: "desk-1", Kind: schemas.NoteCancelled, ItemBarcode: "B-2"},
	}
	v := visit(t, &library{Admin: m})
	p := v.get(t, machinesPath)
	p.want(t, http.StatusOK, "4 notes, the newest first. A note goes after 30 days.", "Patrons are masked.",
		"Hall Taken off-line, not lent", "Code ITEM_NOT_LOANABLE B-1 ****678", "desk-9 Outcome not known",
		"Loan, if it was made: "+heldID, "Hall Card to be blocked", "Hall Check-out taken back")
	p.lacks(t, card)
	v.get(t, machinesPath+"?patrons=shown").want(t, http.StatusOK, "Patrons are written out.", "B-1 P-12345678")
	v = visitAs(t, &library{Admin: m}, auth.Gateway, granted(admin.MaySeeTerminals))
	p = v.get(t, machinesPath+"?patrons=shown") // without the permission for check-outs
	p.want(t, http.StatusOK, "B-1 ****678")
	p.lacks(t, card, "Edit")
}

func TestTerminalsPage_ChangesAMachine(t *testing.T) {
	t.Parallel()
	m := &machines{list: []records.Terminal{{
		ID: annID, Version: 7, Name: "Hall", Login: "desk-1", ServicePointID: strings.ToUpper(heldID), Institution: "main",
		Language: "de", CharacterSet: "cp850", LineEnd: "lf",
	}, {ID: newID, Name: "Annex", ServicePointFromLogin: true}}}
	v := visit(t, &library{Admin: m})
	path := machinesPath + "/" + annID
	p := v.get(t, path)
	p.want(t, http.StatusOK, "Edit Hall", "desk-1")
	p.has(t, `name="version" value="7"`, `value="`+heldID+`" selected`, `value="de" selected`, `value="main"`,
		`value="true" selected`, `value="cp850" selected`, `value="lf" selected`)
	v.get(t, machinesPath+"/"+newID).has(t, `<option value="" selected>from the login</option>`)
	v.get(t, machinesPath+"/"+benID).want(t, http.StatusNotFound, "This machine is not there any more.")
	form := url.Values{
		"version": {"7"}, "name": {" Cellar "}, "place": {benID}, "institution": {""}, "language": {"es"},
		"characterSet": {"utf-8"}, "lineEnd": {"crlf"}, "enabled": {"false"},
	}
	p = v.post(t, path, form)
	if got := p.header.Get("Location"); p.status != http.StatusSeeOther || got != machinesPath+"?done=changed" {
		t.Fatalf("got %d, Location %q", p.status, got)
	}
	want := admin.TerminalChange{
		Version: 7, Name: "Cellar", ServicePointID: benID, Language: "es", CharacterSet: "utf-8", LineEnd: "crlf",
	}
	if len(m.changed) != 1 || m.changed[0] != want {
		t.Errorf("changed %+v, want %+v", m.changed, want)
	}
	m.refusal = fault.StorageRefusal("name is required", fault.Param("name", ""))
	p = v.post(t, path, form)
	p.want(t, http.StatusUnprocessableEntity, "Name : name is required")
	p.has(t, `value="es" selected`)
	m.refusal = fault.New(fault.Conflict, "of another version")
	v.post(t, path, form).want(t, http.StatusUnprocessableEntity, "The machine was changed meanwhile.")
	m.refusal = fault.New(fault.Unavailable, "Storage was not reached")
	v.post(t, path, form).want(t, http.StatusServiceUnavailable)
	m.refusal = fault.New(fault.Conflict, "of another version")
	m.list[0] = records.Terminal{
		ID: annID, Version: 8, Name: "Cellar", Login: "desk-1", ServicePointID: strings.ToUpper(benID), Language: "es",
		CharacterSet: "utf-8", LineEnd: "crlf", Enabled: new(false),
	}
	p = v.post(t, path, form) // the form is sent twice
	if got := p.header.Get("Location"); p.status != http.StatusSeeOther || got != machinesPath+"?done=changed" {
		t.Errorf("sent twice: got %d, Location %q", p.status, got)
	}
	form.Set("enabled", "true")
	if v.post(t, path, form); !m.changed[len(m.changed)-1].Enabled {
		t.Errorf("the machine may not sign in: %+v", m.changed)
	}
	form.Set("version", "x")
	v.post(t, path, form).want(t, http.StatusUnprocessableEntity, "The form is not complete.")
}

func TestTerminalsPage_SpeaksTheReadersLanguage(t *testing.T) {
	t.Parallel()
	m := &machines{list: []records.Terminal{{ID: annID, Name: "Hall", Login: "desk-1", HasPassword: true}}}
	m.activity.Terminals = []schemas.TerminalState{{Login: "desk-1", LastMessage: "11"}}
	m.activity.Notes = []schemas.TerminalNote{{Login: "desk-1", Kind: schemas.NoteCancelled, ItemBarcode: "B-2"}}
	v := visit(t, &library{Admin: m})
	v.get(t, machinesPath+"?language=de").want(t, http.StatusOK, "Selbstverbucher",
		"Ausleihe zurückgenommen", "1 Hinweis,")
	v.get(t, machinesPath+"/"+annID+"?language=es").want(t, http.StatusOK, "Editar Hall", "como de costumbre (CP850)")
}

// A machine may be removed while one of its forms is open.
func TestTerminalsPage_SaysThatAMachineIsGone(t *testing.T) {
	t.Parallel()
	v := visit(t, &library{Admin: &machines{refusal: fault.New(fault.NotFound, "Not found")}})
	path := machinesPath + "/" + annID
	const gone = "This machine is not there any more."
	v.get(t, path).want(t, http.StatusNotFound, gone)
	v.post(t, path, url.Values{"version": {"7"}, "name": {"Hall"}}).want(t, http.StatusNotFound, gone)
	v.post(t, path+"/password", url.Values{"password": {"a-long-one"}}).want(t, http.StatusNotFound, gone)
}
