package sample

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// fixture is the records of a tenant of its own.
type fixture struct{ records *postgres.RecordStore }

func newFixture(t *testing.T) (context.Context, fixture) {
	t.Helper()
	db, id := pgtest.New(t)
	f := fixture{records: postgres.NewRecordStore(db, func() { t.Error("the library has an open loan") })}
	return okapi.WithTenant(t.Context(), id), f
}

// readAll returns all stored records by table, and the rules.
func (f fixture) readAll(ctx context.Context, t *testing.T) map[string][]string {
	t.Helper()
	stored := map[string][]string{}
	for _, typ := range records.Types() {
		list, err := pgtest.List(ctx, f.records, typ, records.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range list.Records {
			stored[typ.Table] = append(stored[typ.Table], string(doc))
		}
	}
	r, err := f.records.Rules(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stored["rules"] = []string{r.RulesAsText}
	return stored
}

func (f fixture) loadAll(ctx context.Context) error { return Load(ctx, f.records, true, true) }

func TestLoad_SecondLoadChangesNothing(t *testing.T) {
	t.Parallel()
	ctx, f := newFixture(t)
	if err := f.loadAll(ctx); err != nil {
		t.Fatal(err)
	}
	first := f.readAll(ctx, t)
	for table, list := range readLibrary(t) {
		if got := len(first[table]); got != len(list) {
			t.Errorf("got %d records in %s, want the %d of the files", got, table, len(list))
		}
	}
	if got := first["rules"][0]; got != readRules(t) {
		t.Errorf("got rules %q, want those of the file", got)
	}
	if err := f.loadAll(ctx); err != nil {
		t.Fatal(err)
	}
	if second := f.readAll(ctx, t); !reflect.DeepEqual(second, first) {
		t.Errorf("loading again changed the library: got %v, want %v", second, first)
	}
}

func TestLoad_KeepsChangesOfStaff(t *testing.T) {
	t.Parallel()
	ctx, f := newFixture(t)
	const rules = "priority: last-line\nfallback-policy: l a r b n c o d i e"
	if err := f.records.SetRules(ctx, rules, true); err != nil {
		t.Fatal(err)
	}
	if err := Load(ctx, f.records, true, false); err != nil {
		t.Fatal(err)
	}
	staff := readLibrary(t).findID(t, "usergroup", "group", "staff")
	group, err := records.Usergroup.Parse([]byte(`{"group":"staff","desc":"Colleagues"}`), staff)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.records.Update(ctx, records.Usergroup, group); err != nil {
		t.Fatal(err)
	}
	before := f.readAll(ctx, t)
	if err := Load(ctx, f.records, true, false); err != nil {
		t.Fatal(err)
	}
	after := f.readAll(ctx, t)
	if !reflect.DeepEqual(after, before) {
		t.Errorf("got %v, want %v", after, before)
	}
	if !slices.ContainsFunc(after["usergroup"], func(doc string) bool { return strings.Contains(doc, "Colleagues") }) {
		t.Errorf("got groups %v, want the changed one among them", after["usergroup"])
	}
	if got := after["rules"][0]; got != rules {
		t.Errorf("got rules %q, want %q", got, rules)
	}
}

func TestLoad_InstancesMayLoadAtOnce(t *testing.T) {
	t.Parallel()
	ctx, f := newFixture(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := f.loadAll(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	stored := f.readAll(ctx, t)
	for table, list := range readLibrary(t) {
		if got := len(stored[table]); got != len(list) {
			t.Errorf("got %d records in %s, want %d", got, table, len(list))
		}
	}
}

func TestLoad_SampleRequiresReferenceRecords(t *testing.T) {
	t.Parallel()
	ctx, f := newFixture(t)
	err := Load(ctx, f.records, false, true)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "users.json") {
		t.Errorf("got %v, want an Invalid fault that names the file", err)
	}
}

func TestLoad_RefusesAnotherRecordWithTheName(t *testing.T) {
	t.Parallel()
	ctx, f := newFixture(t)
	own, err := records.Usergroup.Parse([]byte(`{"group":"Staff"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.records.Create(ctx, records.Usergroup, own); err != nil {
		t.Fatal(err)
	}
	err = Load(ctx, f.records, true, false)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "groups.json") {
		t.Errorf("got %v, want an Invalid fault that names the file", err)
	}
}

// broken is a store during an outage.
type broken struct{ Store }

var errBroken = errors.New("out of order")

// Get implements Store.
func (broken) Get(context.Context, records.Type, string) (json.RawMessage, error) {
	return nil, errBroken
}

func TestLoad_ReturnsAnOutage(t *testing.T) {
	t.Parallel()
	if err := Load(t.Context(), broken{}, true, false); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
}
