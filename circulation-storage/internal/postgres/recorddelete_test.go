package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// remaining returns the usernames that remain, in order.
func (l library) remaining(t *testing.T) string {
	t.Helper()
	list, err := pgtest.List(l.in(t), l.store, records.User, records.Page{
		Query: "cql.allRecords=1 sortby username", Limit: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, doc := range list.Records {
		r, err := records.Decode(doc)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, r.Text("username"))
	}
	return strings.Join(names, " ")
}

func TestRecordStore_DeleteMatching(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, query, left string }{
		{name: "removes an exact match", query: `username==ann`, left: "ben cleo"},
		{name: "ignores case as a list does", query: `username==ANN`, left: "ben cleo"},
		{name: "respects case when asked to", query: `username==/respectCase ANN`, left: "ann ben cleo"},
		{name: "compares ids in columns", query: `patronGroup==` + strings.ToUpper(staffID), left: "ben cleo"},
		{name: "joins comparisons", query: `active==true not username==ann`, left: "ann ben"},
		{name: "compares times", query: `expirationDate<2026-06-01T00:00:00Z`, left: "ann cleo"},
		{name: "finds masked values", query: `barcode=="AB-100?"`, left: "cleo"},
		{name: "finds words", query: `personal.lastName="smith*"`, left: "ben"},
		{name: "ignores the order", query: `username==ann sortby personal.lastName`, left: "ben cleo"},
		{name: "takes an id that is none for no match", query: `id==none`, left: "ann ben cleo"},
		{name: "removes all when asked for all records", query: `cql.allRecords=1`, left: ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := patrons(t)
			if err := l.store.DeleteMatching(l.in(t), records.User, tt.query); err != nil {
				t.Fatal(err)
			}
			if got := l.remaining(t); got != tt.left {
				t.Errorf("left are %q, want %q", got, tt.left)
			}
		})
	}
}

func TestRecordStore_DeleteMatching_RemovesNothingWhenTheQueryIsWrong(t *testing.T) {
	t.Parallel()
	l := patrons(t)
	for name, query := range map[string]string{
		"empty": "", "blank": " \t ", "a parenthesis": ")", "unfinished": "username==",
		"an unknown index": "shoeSize==43", "an unknown index behind a match": "username==ann or shoeSize==43",
		"an unknown relation": "username within ann",
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, l.store.DeleteMatching(l.in(t), records.User, query), fault.Malformed)
			if got := l.remaining(t); got != "ann ben cleo" {
				t.Errorf("left are %q, want all three", got)
			}
		})
	}
}

func TestRecordStore_DeleteMatching_LeavesOtherTenantsAndTypesAlone(t *testing.T) {
	t.Parallel()
	ours, theirs := patrons(t), patrons(t)
	if err := ours.store.DeleteMatching(ours.in(t), records.User, "cql.allRecords=1"); err != nil {
		t.Fatal(err)
	}
	if got := theirs.remaining(t); got != "ann ben cleo" {
		t.Errorf("the other tenant has %q, want all three", got)
	}
	ours.get(t, records.Usergroup, staffID)
}

func TestRecordStore_DeleteMatching_KeepsAllWhenOneIsReferenced(t *testing.T) {
	t.Parallel()
	l := patrons(t)
	err := l.store.DeleteMatching(l.in(t), records.Usergroup, "cql.allRecords=1")
	wantCode(t, err, fault.Invalid)
	want := "Cannot delete usergroup.id = " + staffID + " because id is still referenced from table users. The user " +
		annID + " names it in patronGroup."
	if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Msg != want {
		t.Errorf("got %v, want %s", err, want)
	}
	list, err := pgtest.List(l.in(t), l.store, records.Usergroup, records.Page{})
	if err != nil || list.Total != 2 {
		t.Errorf("%d groups are left, %v, want both", list.Total, err)
	}
	if err := l.store.DeleteMatching(l.in(t), records.Usergroup, "group==guest"); err != nil {
		t.Errorf("deleting the group that has no users: %v", err)
	}
}

// Check-outs read records over the same connections.
func TestRecordStore_DeleteMatching_LeavesConnectionsToShortCalls(t *testing.T) {
	t.Parallel()
	l := patrons(t).alone(t)
	tx, err := l.db.UrgentPool().Begin(l.in(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(l.in(t))) }()
	if _, err := tx.Exec(l.in(t), `SELECT FROM `+postgres.SchemaName(l.id)+`.users FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 4)
	ctx, leave := context.WithCancel(l.in(t))
	defer leave()
	for range cap(ended) {
		go func() { ended <- l.store.DeleteMatching(ctx, records.User, "cql.allRecords=1") }()
	}
	harness{t: t, id: l.id, db: l.db}.waitUntilBlocked(cap(ended))
	var f *fault.Error
	err = l.store.DeleteMatching(l.in(t), records.Usergroup, "group==guest")
	if !errors.As(err, &f) || f.Code != fault.Overloaded || f.RetryAfter != time.Second {
		t.Errorf("the fifth: got %v, want %s and a pause", err, fault.Overloaded)
	}
	l.get(t, records.User, annID)
	leave()
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left: got %v", err)
		}
	}
	if err := l.store.DeleteMatching(l.in(t), records.Usergroup, "group==guest"); err != nil {
		t.Errorf("after them: %v", err)
	}
}

func TestRecordStore_DeleteMatching_RemovesNothingWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	l := patrons(t).alone(t)
	tx, err := l.db.UrgentPool().Begin(l.in(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(l.in(t))) }()
	if _, err := tx.Exec(l.in(t), `SELECT FROM `+postgres.SchemaName(l.id)+`.users WHERE id = $1 FOR UPDATE`,
		cleoID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(l.in(t), 200*time.Millisecond)
	defer cancel()
	wantCode(t, l.store.DeleteMatching(ctx, records.User, "cql.allRecords=1"), fault.Timeout)
	if got := l.remaining(t); got != "ann ben cleo" {
		t.Errorf("left are %q, want all three", got)
	}
}

// A check-out that read the settings before must not commit after.
func TestRecordStore_DeleteMatching_RaisesTheVersionOfTheLockSettings(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.create(t, records.SettingsEntry, object{
		"id": uuid.NewString(), "scope": "mod-circulation", "key": "checkoutLockFeature", "value": object{
			"checkOutLockFeatureEnabled": true,
		},
	})
	l.create(t, records.SettingsEntry, object{"id": uuid.NewString(), "scope": "ui", "key": "colour", "value": "red"})
	settings := postgres.NewLockSettingsStore(l.db)
	version := func() string {
		t.Helper()
		state, err := settings.State(l.in(t))
		if err != nil {
			t.Fatal(err)
		}
		return state.Version
	}
	for _, step := range []struct {
		query  string
		raised bool
	}{{"scope==ui", false}, {"scope==mod-circulation", true}} {
		before := version()
		if err := l.store.DeleteMatching(l.in(t), records.SettingsEntry, step.query); err != nil {
			t.Fatal(err)
		}
		if raised := version() != before; raised != step.raised {
			t.Errorf("after %s the version was raised: %t, want %t", step.query, raised, step.raised)
		}
	}
}
