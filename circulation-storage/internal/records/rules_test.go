package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

const (
	idA = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	idB = "1b26cb5e-2b7e-4c0a-9d26-1a3f1e1a0b01"
	idC = "2c37dc6f-3c8f-4d1b-8e37-2b4f2f2b1c02"
	idD = "3d48ed70-4d90-4e2c-9f48-3c503a3c2d03"
)

// shelf is a Reader over a few records, by table and id.
type shelf map[string]records.Record

func (s shelf) Read(_ context.Context, table, id string) (records.Record, error) {
	if r, ok := s[table+"/"+id]; ok {
		return r, nil
	}
	return nil, fault.New(fault.NotFound, "no %s %s", table, id)
}

func clock() time.Time {
	return time.Date(2026, 8, 22, 10, 11, 12, 345_678_000, time.FixedZone("", 7200))
}

const clockText = "2026-08-22T08:11:12.345+00:00"

func record(t *testing.T, doc string) records.Record {
	t.Helper()
	if doc == "" {
		return nil
	}
	r, err := records.Decode([]byte(strings.NewReplacer("idA", idA, "idB", idB, "idC", idC, "idD", idD).Replace(doc)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// complete parses and completes doc as a write would now.
func complete(t *testing.T, typ records.Type, r records.Reader, doc, stored string) (records.Record, error) {
	t.Helper()
	raw, err := json.Marshal(record(t, doc))
	if err != nil {
		t.Fatal(err)
	}
	got, err := typ.Parse(raw, "")
	if err != nil {
		t.Fatal(err)
	}
	w := records.Write{Record: got, Stored: record(t, stored), Now: clock(), UserID: idD}
	return got, typ.Complete(t.Context(), r, w)
}

func TestItem_ComputesLocationAndCallNumberAsFOLIO(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, item, holdings, location, callNumber string }{
		{name: "nothing anywhere", item: `{}`, holdings: `{}`, location: ``, callNumber: `{}`},
		{
			name: "the holdings' permanent location", item: `{}`, holdings: `{"permanentLocationId":"idA"}`, location: idA,
			callNumber: `{}`,
		},
		{
			name: "the holdings' temporary location", item: `{}`,
			holdings: `{"permanentLocationId":"idA","temporaryLocationId":"idB"}`, location: idB, callNumber: `{}`,
		},
		{
			name: "the item's permanent location", item: `{"permanentLocationId":"idC"}`,
			holdings: `{"permanentLocationId":"idA","temporaryLocationId":"idB"}`, location: idC, callNumber: `{}`,
		},
		{
			name: "the item's temporary location", item: `{"permanentLocationId":"idC","temporaryLocationId":"idD"}`,
			holdings: `{"permanentLocationId":"idA","temporaryLocationId":"idB"}`, location: idD, callNumber: `{}`,
		},
		{
			name:     "each part of the call number on its own",
			item:     `{"itemLevelCallNumber":"IC","itemLevelCallNumberSuffix":"","itemLevelCallNumberTypeId":"idA"}`,
			holdings: `{"callNumber":"HC","callNumberPrefix":"HP","callNumberSuffix":"HS","callNumberTypeId":"idB"}`,
			location: ``, callNumber: `{"callNumber":"IC","prefix":"HP","suffix":"HS","typeId":"idA"}`,
		},
		{
			name:     "what was there is replaced",
			item:     `{"effectiveLocationId":"idA","effectiveCallNumberComponents":{"callNumber":"old","ours":1}}`,
			holdings: `{"callNumber":"new"}`, location: ``, callNumber: `{"callNumber":"new"}`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			item := record(t, tc.item)
			records.DeriveItem(item, record(t, tc.holdings))
			if got := item.Text("effectiveLocationId"); got != tc.location {
				t.Errorf("got location %q, want %q", got, tc.location)
			}
			if _, there := item["effectiveLocationId"]; there && tc.location == "" {
				t.Error("an empty effectiveLocationId was written")
			}
			if got, want := item.Object("effectiveCallNumberComponents"), record(t, tc.callNumber); !reflect.DeepEqual(got,
				want) {
				t.Errorf("got call number %v, want %v", got, want)
			}
		})
	}
}

const newItem = `{"id":"idA","holdingsRecordId":"idB","materialTypeId":"idC","permanentLoanTypeId":"idC",` +
	`"status":{"name":"Available","date":"2001-01-01"}`

func TestItem_KeepsTheStatusDate(t *testing.T) {
	t.Parallel()
	holdings := shelf{"holdings_record/" + idB: record(t, `{"permanentLocationId":"idD"}`)}
	tests := []struct{ name, stored, want string }{
		{name: "created", stored: ``, want: clockText},
		{
			name: "same status", stored: `{"_version":1,"status":{"name":"Available","date":"2020-02-02T00:00:00.000+00:00"}}`,
			want: "2020-02-02T00:00:00.000+00:00",
		},
		{name: "same status, never dated", stored: `{"_version":1,"status":{"name":"Available"}}`, want: clockText},
		{
			name:   "another status",
			stored: `{"_version":1,"status":{"name":"Checked out","date":"2020-02-02T00:00:00.000+00:00"}}`, want: clockText,
		},
	}
	for _, tc := range tests {
		got, err := complete(t, records.Item, holdings, newItem+`,"_version":1}`, tc.stored)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if date := got.Text("status.date"); date != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, date, tc.want)
		}
		if got.Text("effectiveLocationId") != idD {
			t.Errorf("%s: effectiveLocationId is %q, want the holdings'", tc.name, got.Text("effectiveLocationId"))
		}
	}
}

func TestType_CompleteLeavesACopyUnchanged(t *testing.T) {
	t.Parallel()
	holdings := shelf{"holdings_record/" + idB: record(t, `{"permanentLocationId":"idD"}`)}
	sent, want := record(t, newItem+`,"metadata":{"ours":1}}`), record(t, newItem+`,"metadata":{"ours":1}}`)
	w := records.Write{Record: maps.Clone(sent), Now: clock(), UserID: idD}
	if err := records.Item.Complete(t.Context(), holdings, w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sent, want) {
		t.Errorf("got %v, want %v unchanged: the transaction may run again", sent, want)
	}
}

type outageReader struct{ err error }

func (b outageReader) Read(context.Context, string, string) (records.Record, error) {
	return nil, b.err
}

func TestItem_RequiresItsHoldingsRecord(t *testing.T) {
	t.Parallel()
	_, err := complete(t, records.Item, shelf{}, newItem+`}`, ``)
	want := "Cannot set item.holdingsRecordId = " + idB + " because it does not exist in holdings_record.id."
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	outage := errors.New("connection lost")
	if _, err = complete(t, records.Item, outageReader{outage}, newItem+`}`, ``); !errors.Is(err, outage) ||
		!fault.Is(err, fault.Internal) {
		t.Errorf("got %v, want the outage unchanged", err)
	}
	const policy = `{"name":"n","allowedServicePoints":{"Hold":["idA"]}}`
	if _, err = complete(t, records.RequestPolicy, outageReader{outage}, policy, ``); !errors.Is(err, outage) {
		t.Errorf("a request policy: got %v, want the outage unchanged", err)
	}
	records.StampStatus(records.Write{Record: records.Record{}, Now: clock()}) // does not panic
}

func TestHoldings_EffectiveLocation(t *testing.T) {
	t.Parallel()
	const doc = `{"instanceId":"idA","permanentLocationId":"idB","effectiveLocationId":"idD"`
	for member, want := range map[string]string{``: idB, `,"temporaryLocationId":"idC"`: idC} {
		got, err := complete(t, records.Holdings, shelf{}, doc+member+`}`, ``)
		if err != nil || got.Text("effectiveLocationId") != want {
			t.Errorf("%s: got %q, %v, want %q", member, got.Text("effectiveLocationId"), err, want)
		}
	}
}

func TestLoan_ObeysFOLIOsRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, loan string
		code       fault.Code
		says       string // the message, or the status of an accepted loan
	}{
		{name: "open unless it says otherwise", loan: `{"userId":"idA","loanDate":"2026-08-22"`, code: "", says: "Open"},
		{
			name: "open without patron", loan: `{"loanDate":"2026-08-22T10:11:12Z"`, code: fault.Invalid,
			says: "Open loan must have a user ID",
		},
		{
			name: "open without patron, said aloud", loan: `{"loanDate":"2026-08-22","status":{"name":"Open"}`,
			code: fault.Invalid, says: "Open loan must have a user ID",
		},
		{
			name: "closed without patron", loan: `{"loanDate":"2026-08-22T10:11:12.000+0000","status":{"name":"Closed"}`,
			code: "", says: "Closed",
		},
		{
			name: "no date", loan: `{"userId":"idA","loanDate":"foo"`, code: fault.Malformed,
			says: "loan date must be a date time (in RFC3339 format)",
		},
		{
			name: "empty date", loan: `{"userId":"idA","loanDate":""`, code: fault.Malformed,
			says: "loan date must be a date time (in RFC3339 format)",
		},
		{
			name: "no return date", loan: `{"userId":"idA","loanDate":"2026-08-22","returnDate":"bar"`, code: fault.Malformed,
			says: "return date must be a date time (in RFC3339 format)",
		},
		{
			name: "no dates", loan: `{"userId":"idA","loanDate":"foo","returnDate":"bar"`, code: fault.Malformed,
			says: "loan date must be a date time (in RFC3339 format)\nreturn date must be a date time (in RFC3339 format)",
		},
	}
	for _, tc := range tests {
		got, err := complete(t, records.Loan, shelf{}, tc.loan+`,"itemId":"idB","action":"checkedout"}`, ``)
		var f *fault.Error
		switch {
		case tc.code == "" && (err != nil || got.Text("status.name") != tc.says ||
			records.IsOpenLoan(got) != (tc.says == "Open")):
			t.Errorf("%s: got %v, %v, want status %s", tc.name, got["status"], err, tc.says)
		case tc.code != "" && (!errors.As(err, &f) || f.Code != tc.code || f.Msg != tc.says):
			t.Errorf("%s: got %v, want %s: %s", tc.name, err, tc.code, tc.says)
		}
	}
}

func TestSettingsEntry_RefusesInvalidLockSettings(t *testing.T) {
	t.Parallel()
	const tenants = `{"scope":"mod-circulation","key":"checkoutLockFeature"`
	tests := []struct{ name, entry, want string }{
		{
			name: "FOLIO's string", entry: tenants + `,"value":"{\"checkOutLockFeatureEnabled\":true,\"lockTtl\":2000}"`,
			want: "",
		},
		{
			name: "an object", entry: tenants + `,"value":{"checkOutLockFeatureEnabled":true,"retryIntervals":[500,500,1000]}`,
			want: "",
		},
		{
			name: "a null in it is absent", entry: tenants + `,"value":{"checkOutLockFeatureEnabled":true,"lockTtl":null}`,
			want: "",
		},
		{
			name: "a typo", entry: tenants + `,"value":{"checkoutLockFeatureEnabled_":true}`,
			want: "fields: checkOutLockFeatureEnabled, lockTtl",
		},
		{
			name: "broken JSON in the string", entry: tenants + `,"value":"{checkOutLockFeatureEnabled:true}"`,
			want: "value cannot be read",
		},
		{
			name: "a TTL out of range", entry: tenants + `,"value":{"lockTtl":1}`,
			want: "lockTtl is 1, allowed are integers from 250 to 600000",
		},
		{name: "a user's own", entry: tenants + `,"userId":"idA","value":"anything"`, want: ""},
		{name: "another key", entry: `{"scope":"mod-circulation","key":"noticesLimit","value":17`, want: ""},
		{name: "another scope", entry: `{"scope":"ui","key":"checkoutLockFeature","value":17`, want: ""},
	}
	for _, tc := range tests {
		_, err := complete(t, records.SettingsEntry, shelf{}, tc.entry+`}`, ``)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: refused: %v", tc.name, err)
		case tc.want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
	upper, err := complete(t, records.SettingsEntry, shelf{}, `{"scope":"ui","key":"k","value":1,"userId":"`+
		strings.ToUpper(idA)+`"}`, ``)
	if err != nil || upper.Text("userId") != idA {
		t.Errorf("got userId %q, %v, want it in lower case, or a user has two entries", upper.Text("userId"), err)
	}
}
