package postgres_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// library is a tenant's records as a test sees them.
type library struct {
	id       okapi.Tenant
	store    *postgres.RecordStore
	db       *postgres.DB
	unfenced *atomic.Int32 // loans reported as written past the fence
}

func newLibrary(tb testing.TB) library {
	tb.Helper()
	db, id := pgtest.New(tb)
	unfenced := &atomic.Int32{}
	store := postgres.NewRecordStore(db, func() { unfenced.Add(1) })
	return library{id, store, db, unfenced}
}

// alone is the same library through a pool that no other test uses.
func (l library) alone(t *testing.T) library {
	t.Helper()
	l.db = pgtest.Open(t)
	l.store = postgres.NewRecordStore(l.db, func() { l.unfenced.Add(1) })
	return l
}

// in is the context of a call of Ann for the tenant.
func (l library) in(tb testing.TB) context.Context {
	tb.Helper()
	return okapi.NewContext(tb.Context(), okapi.Call{Tenant: l.id, UserID: annID})
}

// object is a record as a client writes it.
type object = map[string]any

func parse(tb testing.TB, typ records.Type, o object, id string) records.Record {
	tb.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := typ.Parse(body, id)
	if err != nil {
		tb.Fatalf("%s %s: %v", typ.Name, body, err)
	}
	return r
}

func (l library) tryCreate(tb testing.TB, typ records.Type, o object) (records.Record, error) {
	tb.Helper()
	doc, err := l.store.Create(l.in(tb), typ, parse(tb, typ, o, ""))
	if err != nil {
		return nil, err
	}
	return records.Decode(doc)
}

func (l library) create(tb testing.TB, typ records.Type, o object) records.Record {
	tb.Helper()
	r, err := l.tryCreate(tb, typ, o)
	if err != nil {
		tb.Fatalf("creating %s %v: %v", typ.Name, o, err)
	}
	return r
}

func (l library) get(tb testing.TB, typ records.Type, id string) records.Record {
	tb.Helper()
	doc, err := l.store.Get(l.in(tb), typ, id)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := records.Decode(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func (l library) update(tb testing.TB, typ records.Type, r records.Record) error {
	tb.Helper()
	return l.store.Update(l.in(tb), typ, parse(tb, typ, r, r.ID()))
}

func (l library) location(tb testing.TB, code string) string {
	tb.Helper()
	return l.create(tb, records.Location, l.newLocation(tb, code)).ID()
}

// newLocation is a location that could be created, with records of its own around it.
func (l library) newLocation(tb testing.TB, code string) object {
	tb.Helper()
	institution := l.create(tb, records.Institution, object{"name": code}).ID()
	campus := l.create(tb, records.Campus, object{"name": code, "institutionId": institution}).ID()
	branch := l.create(tb, records.Library, object{"name": code, "campusId": campus}).ID()
	desk := l.create(tb, records.ServicePoint, object{"name": code, "code": code}).ID()
	return object{
		"name": code, "code": code, "institutionId": institution, "campusId": campus, "libraryId": branch,
		"primaryServicePoint": desk, "servicePointIds": []string{desk},
	}
}

// holdings makes a title with one holdings record at location.
func (l library) holdings(tb testing.TB, location string) string {
	tb.Helper()
	instance := l.create(tb, records.Instance, object{
		"title": "Watership Down", "source": "FOLIO", "instanceTypeId": uuid.NewString(),
	})
	return l.create(tb, records.Holdings, object{
		"instanceId": instance.ID(), "permanentLocationId": location, "sourceId": uuid.NewString(), "callNumber": "PR6051",
	}).ID()
}

// newItem is an item that could be created; each has types of its own.
func (l library) newItem(tb testing.TB, holdings, barcode string) object {
	tb.Helper()
	book := l.create(tb, records.MaterialType, object{"name": "book " + uuid.NewString()})
	canCirculate := l.create(tb, records.LoanType, object{"name": "can circulate " + uuid.NewString()})
	return object{
		"holdingsRecordId": holdings, "materialTypeId": book.ID(), "permanentLoanTypeId": canCirculate.ID(),
		"barcode": barcode, "status": object{"name": "Available"},
	}
}

func newLoan(item, user string) object {
	return object{"itemId": item, "userId": user, "loanDate": "2026-08-22T10:11:12.000Z", "action": "checkedout"}
}

func wantCode(tb testing.TB, err error, want fault.Code) {
	tb.Helper()
	if got := fault.CodeOf(err); got != want {
		tb.Errorf("got %s (%v), want %s", got, err, want)
	}
}
