package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// FOLIO's programs write a circulation setting again with POST.
func TestRecordStore_CreateReplacesASettingOfTheSameName(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	first := l.create(t, records.CirculationSetting, object{"name": "other_settings", "value": object{"a": 1}})
	again := l.create(t, records.CirculationSetting, object{
		"id": annID, "name": "OTHER_settings", "value": object{"b": 2},
	})
	if again.ID() != first.ID() || again.Object("value")["a"] != nil ||
		again.Text("metadata.createdDate") != first.Text("metadata.createdDate") ||
		again.Text("metadata.updatedByUserId") != annID {
		t.Errorf("got %v, want the first setting with another value", again)
	}
	var writes sync.WaitGroup
	for range 8 {
		writes.Go(func() {
			if _, err := l.tryCreate(t, records.CirculationSetting, object{"name": "new", "value": object{}}); err != nil {
				t.Error(err)
			}
		})
	}
	writes.Wait()
	list, err := pgtest.List(l.in(t), l.store, records.CirculationSetting, records.Page{})
	if err != nil || list.Total != 2 {
		t.Errorf("%d settings, %v, want two", list.Total, err)
	}
	_, err = l.tryCreate(t, records.CirculationSetting, object{
		"id": first.ID(), "name": "another name", "value": object{},
	})
	wantCode(t, err, fault.Invalid)
}

func TestRecordStore_ItemFollowsItsHoldings(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	main, annex := l.location(t, "main"), l.location(t, "annex")
	holdings := l.holdings(t, main)
	plain := l.create(t, records.Item, l.newItem(t, holdings, "plain"))
	own := l.newItem(t, holdings, "own")
	own["permanentLocationId"], own["itemLevelCallNumber"] = main, "X 1"
	stays := l.create(t, records.Item, own)
	if got := plain.Text("effectiveLocationId"); got != main {
		t.Fatalf("effectiveLocationId is %q, want the holdings' %q", got, main)
	}

	h := l.get(t, records.Holdings, holdings)
	h["temporaryLocationId"], h["callNumberPrefix"] = annex, "fol"
	if err := l.update(t, records.Holdings, h); err != nil {
		t.Fatal(err)
	}
	moved := l.get(t, records.Item, plain.ID())
	if got := moved.Text("effectiveLocationId"); got != annex {
		t.Errorf("effectiveLocationId is %q after the holdings moved, want %q", got, annex)
	}
	if got := moved.Text("effectiveCallNumberComponents.prefix"); got != "fol" {
		t.Errorf("the call number's prefix is %q, want fol", got)
	}
	if got := moved.Text("status.date"); got != plain.Text("status.date") {
		t.Errorf("status.date went from %s to %s without a change of status", plain.Text("status.date"), got)
	}
	if v, _ := moved.Version(); v != 2 {
		t.Errorf("_version of an item that moved is %d, want 2", v)
	}
	unmoved := l.get(t, records.Item, stays.ID())
	if got := unmoved.Text("effectiveLocationId"); got != main {
		t.Errorf("an item with a location of its own moved to %q", got)
	}
	if got := unmoved.Text("effectiveCallNumberComponents.prefix"); got != "fol" {
		t.Errorf("the call number's prefix is %q, want the holdings' fol", got)
	}
}

func TestRecordStore_HoldingsUpdateLeavesItemsThatKeepTheirValues(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	holdings := l.holdings(t, l.location(t, "main"))
	item := l.create(t, records.Item, l.newItem(t, holdings, "b"))
	h := l.get(t, records.Holdings, holdings)
	h["shelvingTitle"] = "Down, Watership"
	tx, err := l.db.Pool().Begin(l.in(t)) // a check-out that holds the item
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(l.in(t)) }()
	if _, err := tx.Exec(l.in(t), `SELECT FROM `+postgres.SchemaName(l.id)+`.item FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(l.in(t), time.Minute)
	defer cancel()
	if err := l.store.Update(ctx, records.Holdings, parse(t, records.Holdings, h, holdings)); err != nil {
		t.Fatalf("the update waits for an item that it leaves alone: %v", err)
	}
	if v, _ := l.get(t, records.Item, item.ID()).Version(); v != 1 {
		t.Errorf("_version of the item is %d, want 1", v)
	}
}

// Through PgBouncer, pgx must derive the types of parameters from Go's.
func TestRecordStore_WithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.db = openWith(t, pooled)
	l.store = postgres.NewRecordStore(l.db, func() {})
	item := l.create(t, records.Item, l.newItem(t, l.holdings(t, l.location(t, "main")), "b"))
	h := l.get(t, records.Holdings, item.Text("holdingsRecordId"))
	h["callNumber"] = "new"
	if err := l.update(t, records.Holdings, h); err != nil {
		t.Fatal(err)
	}
	query := `effectiveCallNumberComponents.callNumber==new and metadata.createdDate>2020-01-01 and holdingsRecordId==` +
		h.ID() +
		` and status.name any "available unknown" not order>3 sortBy status.date`
	list, err := pgtest.List(l.in(t), l.store, records.Item, records.Page{Query: query, Limit: 5})
	if err != nil || len(list.Records) != 1 || list.Total != 1 {
		t.Errorf("got %d of %d, %v, want the one item", len(list.Records), list.Total, err)
	}
	if err := l.store.Delete(l.in(t), records.Item, item.ID()); err != nil {
		t.Error(err)
	}
}

// A transaction that runs again begins with the same record.
func TestRecordStore_LeavesTheCallersRecordAsItIs(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	r := parse(t, records.Instance, object{
		"title": "Watership Down", "_version": 7, "metadata": object{"createdDate": "2020-01-01"},
	}, "")
	sent := fmt.Sprint(r)
	if _, err := l.store.Create(l.in(t), records.Instance, r); err != nil {
		t.Fatal(err)
	}
	wantCode(t, l.store.Update(l.in(t), records.Instance, r), fault.Conflict)
	if got := fmt.Sprint(r); got != sent {
		t.Errorf("the record became %s, was %s", got, sent)
	}
}

func TestRecordStore_ReportsUnfencedLoans(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	item, user := uuid.NewString(), uuid.NewString()
	steps := []struct {
		name string
		do   func() error
		want int32
	}{
		{name: "an open loan", do: func() error {
			_, err := l.tryCreate(t, records.Loan, newLoan(item, user))
			return err
		}, want: 1},
		{name: "a second one for the item is refused", do: func() error {
			_, err := l.tryCreate(t, records.Loan, newLoan(item, user))
			wantCode(t, err, fault.Invalid)
			return nil
		}, want: 1},
		{name: "a change of the open loan", do: func() error { return l.changeLoan(t, "Open", "renewed") }, want: 1},
		{name: "its end", do: func() error { return l.changeLoan(t, "Closed", "checkedin") }, want: 1},
		{name: "its reopening", do: func() error { return l.changeLoan(t, "Open", "checkedout") }, want: 2},
		{name: "a PUT that creates one", do: func() error {
			o := newLoan(uuid.NewString(), user)
			o["id"] = uuid.NewString()
			return l.update(t, records.Loan, o)
		}, want: 3},
		{name: "a PUT of one without a patron is refused", do: func() error {
			o := newLoan(uuid.NewString(), "")
			o["id"], o["userId"] = uuid.NewString(), nil
			wantCode(t, l.update(t, records.Loan, o), fault.Invalid)
			return nil
		}, want: 3},
		{name: "a closed loan", do: func() error {
			o := newLoan(uuid.NewString(), user)
			o["status"] = object{"name": "Closed"}
			_, err := l.tryCreate(t, records.Loan, o)
			return err
		}, want: 3},
	}
	for _, s := range steps { // in order: each builds on the one before
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := l.unfenced.Load(); got != s.want {
			t.Fatalf("after %s: %d loans reported, want %d", s.name, got, s.want)
		}
	}
}

// changeLoan updates the tenant's first loan.
func (l library) changeLoan(t *testing.T, status, action string) error {
	list, err := pgtest.List(l.in(t), l.store, records.Loan, records.Page{
		Query: "loanDate>2000-01-01 sortBy metadata.createdDate", Limit: 1,
	})
	if err != nil {
		return err
	}
	loan, err := records.Decode(list.Records[0])
	if err != nil {
		return err
	}
	loan["status"], loan["action"] = object{"name": status}, action
	return l.update(t, records.Loan, loan)
}

func (l library) settingsVersion(t *testing.T) (version int) {
	err := l.db.Pool().QueryRow(l.in(t), `SELECT version FROM `+postgres.SchemaName(l.id)+
		`.lock_settings_version`).Scan(&version)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestRecordStore_EveryChangeOfTheLockSettingsRaisesTheirVersion(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	typ := records.SettingsEntry
	entry := object{
		"id": uuid.NewString(), "scope": "mod-circulation", "key": "checkoutLockFeature",
		"value": object{"checkOutLockFeatureEnabled": true},
	}
	other := object{"id": uuid.NewString(), "scope": "mod-circulation", "key": "otherFeature", "value": 1}
	change := func(o object, key string) func() error {
		return func() error {
			o["key"] = key
			return l.update(t, typ, o)
		}
	}
	steps := []struct {
		name   string
		do     func() error
		raises bool
	}{
		{
			name: "creating another entry", do: func() error { _, err := l.tryCreate(t, typ, other); return err },
			raises: false,
		},
		{
			name: "creating the entry", do: func() error { _, err := l.tryCreate(t, typ, entry); return err },
			raises: true,
		},
		{name: "changing it", do: change(entry, "checkoutLockFeature"), raises: true},
		{name: "renaming it away", do: change(entry, "somethingElse"), raises: true},
		{name: "changing it there", do: change(entry, "somethingElse"), raises: false},
		{name: "renaming it back", do: change(entry, "checkoutLockFeature"), raises: true},
		{
			name: "deleting the other entry", do: func() error { return l.store.Delete(l.in(t), typ, other["id"].(string)) },
			raises: false,
		},
		{
			name: "deleting the entry", do: func() error { return l.store.Delete(l.in(t), typ, entry["id"].(string)) },
			raises: true,
		},
	}
	for _, s := range steps {
		before := l.settingsVersion(t)
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if now := l.settingsVersion(t); (now > before) != s.raises || now < before {
			t.Errorf("%s: version %d became %d, want it raised: %t", s.name, before, now, s.raises)
		}
	}
}

func TestRecordStore_List_ReturnsPageAndTotal(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for i := range 7 {
		l.create(t, records.MaterialType, object{"name": fmt.Sprintf("type %d", i)})
	}
	tests := map[string]struct {
		page        records.Page
		wantRecords int
		wantTotal   int
	}{
		"the first page":        {page: records.Page{Limit: 3}, wantRecords: 3, wantTotal: 7},
		"the last page":         {page: records.Page{Offset: 6, Limit: 3}, wantRecords: 1, wantTotal: 7},
		"behind the last":       {page: records.Page{Offset: 7, Limit: 3}, wantRecords: 0, wantTotal: 7},
		"nothing but the total": {page: records.Page{Limit: 0}, wantRecords: 0, wantTotal: 7},
		"nothing matches": {
			page: records.Page{Query: `name=="nothing"`, Limit: 3}, wantRecords: 0, wantTotal: 0,
		},
		"everything, as FOLIO asks": {
			page: records.Page{Query: "cql.allRecords=1 sortby name", Limit: 1<<31 - 1}, wantRecords: 7, wantTotal: 7,
		},
		"without counting": {
			page: records.Page{Limit: 3, Total: records.TotalNone}, wantRecords: 3, wantTotal: 0,
		},
		"without counting, on no record": {
			page: records.Page{Offset: 1<<31 - 1, Limit: 3, Total: records.TotalNone}, wantRecords: 0, wantTotal: 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := pgtest.List(l.in(t), l.store, records.MaterialType, tt.page)
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Records) != tt.wantRecords || list.Total != tt.wantTotal {
				t.Errorf("got %d records of %d, want %d of %d", len(list.Records), list.Total, tt.wantRecords, tt.wantTotal)
			}
		})
	}
}

func TestRecordStore_List_PagesNeitherRepeatNorSkip(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	seen := map[string]bool{}
	for i := range 10 {
		l.create(t, records.MaterialType, object{"name": fmt.Sprint(i), "source": "local"})
	}
	for offset := range 10 {
		list, err := pgtest.List(l.in(t), l.store, records.MaterialType, records.Page{
			Query: "source==local sortBy source", Offset: offset, Limit: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		r, _ := records.Decode(list.Records[0])
		seen[r.ID()] = true
	}
	if len(seen) != 10 {
		t.Errorf("ten pages of one record showed %d different ones, want 10", len(seen))
	}
}
