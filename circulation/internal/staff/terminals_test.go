package staff_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	records "checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/staff"
	"checkoutlock/schemas/fault"
)

// machines is an Admin of self-check machines.
type machines struct {
	staff.Admin
	list    []records.Terminal
	refusal error // of a change
	added   []admin.NewTerminal
	set     []string // terminal and password
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

const machinesPath = "/staff/diku/machines"

func TestTerminalsPage_ListsMachines(t *testing.T) {
	t.Parallel()
	no := false
	v := visit(t, &library{Admin: &machines{list: []records.Terminal{
		{ID: annID, Name: "Hall <1>", Login: "desk-1", ServicePointID: heldID, HasPassword: true},
		{ID: benID, Name: "Annex 2", Login: "desk-2", ServicePointID: newID},
		{ID: newID, Name: "Cellar", Login: "desk-3", ServicePointFromLogin: true, HasPassword: true, Enabled: &no},
	}}})
	p := v.get(t, machinesPath)
	p.want(t, http.StatusOK, "Hall <1> desk-1 Front <desk> yes New password",
		"Annex 2 desk-2 not found no, it has no password New password", "Cellar desk-3 from the login no, it is disabled")
	p.has(t, `href="`+machinesPath+"/"+annID+`/password"`, `<option value="`+heldID+`">Front &lt;desk&gt;</option>`)
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
	v.get(t, machinesPath)
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
	m.refusal = fault.StorageRefusal("login value already exists: desk-1", fault.Param("login", "desk-1"))
	p = v.post(t, machinesPath, form("right-secret"))
	p.want(t, http.StatusUnprocessableEntity, "Login : login value already exists")
	p.has(t, `value="desk-1"`, `<option value="`+heldID+`" selected>`)
	p.lacks(t, "right-secret")
	m.refusal = fault.StorageRefusal("the record is too odd")
	v.post(t, machinesPath, form("right-secret")).want(t, http.StatusUnprocessableEntity, "the record is too odd")
	m.refusal = fault.New(fault.Unavailable, "Storage was not reached")
	p = v.post(t, machinesPath, form("right-secret"))
	p.want(t, http.StatusServiceUnavailable)
	p.lacks(t, "right-secret")
}

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
	for _, refusal := range []error{
		fault.StorageRefusal("password must have from 8 to 72 bytes", fault.Param("password", "(hidden)")),
		fault.New(fault.Conflict, "It was changed meanwhile"),
	} {
		m.refusal = refusal
		p := v.post(t, path, url.Values{"password": {"next-secret"}})
		p.want(t, http.StatusUnprocessableEntity, fault.Text(refusal))
		p.lacks(t, "next-secret")
	}
}
