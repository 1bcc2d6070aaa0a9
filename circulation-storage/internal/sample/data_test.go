package sample

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
)

// library has the records of the files by table, in order.
type library map[string][]records.Record

// readLibrary parses every record, which checks it against its schema.
func readLibrary(t *testing.T) library {
	t.Helper()
	lib := library{}
	files, err := fs.Glob(data, "data/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, typ := range records.Types() {
		for _, folder := range []string{referenceFolder, sampleFolder} {
			docs, err := readRecords(folder, typ)
			if err != nil {
				t.Fatal(err)
			}
			read += min(len(docs), 1)
			lib[typ.Table] = append(lib[typ.Table], parseRecords(t, typ, docs)...)
		}
	}
	if read != len(files) {
		t.Errorf("got records of %d types, want some in each of the files %q", read, files)
	}
	return lib
}

func parseRecords(t *testing.T, typ records.Type, docs []json.RawMessage) (list []records.Record) {
	t.Helper()
	for i, doc := range docs {
		var plain struct{ ID string }
		if err := json.Unmarshal(doc, &plain); err != nil {
			t.Fatalf("record %d of %s: %v", i+1, fileOf(typ), err)
		}
		r, err := typ.Parse(doc, "")
		if err != nil {
			t.Fatalf("record %d of %s: %v", i+1, fileOf(typ), err)
		}
		if r.ID() != plain.ID {
			t.Errorf("record %d of %s: id in the file is %q; without one it would be another at each load", i+1, fileOf(typ),
				plain.ID)
		}
		list = append(list, r)
	}
	return list
}

func (l library) has(table, id string) bool {
	return slices.ContainsFunc(l[table], func(r records.Record) bool { return r.ID() == id })
}

// findID returns the id of the record with that value in a field.
func (l library) findID(t *testing.T, table, field, value string) string {
	t.Helper()
	for _, r := range l[table] {
		if r.Text(field) == value {
			return r.ID()
		}
	}
	t.Fatalf("no %s has the %s %q", table, field, value)
	return ""
}

func TestData_RecordsAreValidWithUniqueIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for table, list := range readLibrary(t) {
		for _, r := range list {
			id, err := uuid.Parse(r.ID())
			if err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 {
				t.Errorf("%s %s: got %v, %v, want a UUID of version 4", table, r.ID(), id, err)
			}
			if other := seen[r.ID()]; other != "" {
				t.Errorf("%s and %s share the id %s", table, other, r.ID())
			}
			seen[r.ID()] = table
		}
	}
}

func TestData_ReferencesNameExistingRecords(t *testing.T) {
	t.Parallel()
	lib := readLibrary(t)
	checked := 0
	for _, typ := range records.Types() {
		refs := typ.References
		if typ.Table == records.Item.Table { // references that the database does not check
			refs = append(refs, records.Reference{Field: "inTransitDestinationServicePointId", To: "service_point"})
		}
		for _, r := range lib[typ.Table] {
			for _, ref := range refs {
				id := r.Text(ref.Field)
				if id == "" {
					continue
				}
				checked++
				if !lib.has(ref.To, id) {
					t.Errorf("%s %s: %s is %s, which is no %s", typ.Table, r.ID(), ref.Field, id, ref.To)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("got %d references, want those of all records", checked)
	}
}

// The library stays the same for years: memberships last until 2039 or ended in 2021.
func TestData_DatesDoNotDependOnToday(t *testing.T) {
	t.Parallel()
	ends := map[string]int{}
	for _, u := range readLibrary(t)["users"] {
		year, _, _ := strings.Cut(u.Text("expirationDate"), "-")
		ends[year]++
	}
	if ends["2039"] == 0 || ends["2021"] == 0 || len(ends) != 2 {
		t.Errorf("got patrons by the year their membership ends %v, want some in 2021 and the others in 2039", ends)
	}
}

// rule is one line of the rules text, as far as it names records of the library.
var (
	ruleLoanPolicy    = regexp.MustCompile(`\bl ([0-9a-f-]{36})\b`)
	ruleRequestPolicy = regexp.MustCompile(`\br ([0-9a-f-]{36})\b`)
	ruleNoticePolicy  = regexp.MustCompile(`\bn ([0-9a-f-]{36})\b`)
	ruleCriterion     = regexp.MustCompile(`(?m)^ *([mtg])((?: [0-9a-f-]{36})+): `)
)

func readRules(t *testing.T) string {
	t.Helper()
	text, err := data.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestData_RulesNameExistingRecords(t *testing.T) {
	t.Parallel()
	lib, text := readLibrary(t), readRules(t)
	policies := ruleLoanPolicy.FindAllStringSubmatch(text, -1)
	for _, m := range policies {
		if !lib.has("loan_policy", m[1]) {
			t.Errorf("the rules name loan policy %s, which is none", m[1])
		}
	}
	for _, m := range ruleRequestPolicy.FindAllStringSubmatch(text, -1) {
		if !lib.has("request_policy", m[1]) {
			t.Errorf("the rules name request policy %s, which is none", m[1])
		}
	}
	for _, m := range ruleNoticePolicy.FindAllStringSubmatch(text, -1) {
		if !lib.has("patron_notice_policy", m[1]) {
			t.Errorf("the rules name patron notice policy %s, which is none", m[1])
		}
	}
	criteria := ruleCriterion.FindAllStringSubmatch(text, -1)
	tables := map[string]string{"m": "material_type", "t": "loan_type", "g": "usergroup"}
	for _, m := range criteria {
		for id := range strings.FieldsSeq(m[2]) {
			if !lib.has(tables[m[1]], id) {
				t.Errorf("the rules name %s %s, which is no %s", m[1], id, tables[m[1]])
			}
		}
	}
	rules := 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, ": ") && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "priority") {
			rules++
		}
	}
	if len(policies) != rules || len(criteria) != rules-1 {
		t.Errorf("understood %d policies and %d criteria, want one of each for %d lines, but no criterion of the fallback",
			len(policies), len(criteria), rules)
	}
}

// FOLIO's clients know the conditions by their ids. None of them blocks until staff say so.
func TestData_HasTheConditionsOfFOLIO(t *testing.T) {
	t.Parallel()
	list := readLibrary(t)["patron_block_conditions"]
	for id, name := range map[string]string{
		records.ItemsChargedOut: "Maximum number of items charged out", records.LostItems: "Maximum number of lost items",
		records.OverdueItems: "Maximum number of overdue items", records.OverdueRecalls: "Maximum number of overdue recalls",
		records.DaysOfOverdueRecall:  "Recall overdue by maximum number of days",
		records.OutstandingFeesFines: "Maximum outstanding fee/fine balance",
	} {
		if !slices.ContainsFunc(list, func(r records.Record) bool {
			return r.ID() == id && r.Text("name") == name && r.Text("message") == "" && r["blockBorrowing"] == false
		}) {
			t.Errorf("there is no condition %s %q", id, name)
		}
	}
	if len(list) != 6 {
		t.Errorf("got %d conditions, want 6", len(list))
	}
}

// The demonstrations rely on it.
func TestData_HasMoreBooksThanTheLimit(t *testing.T) {
	t.Parallel()
	lib := readLibrary(t)
	for _, tt := range []struct {
		materialType, policy, limit string
		lendable                    int
	}{
		{materialType: "book", policy: "Books, at most 15", limit: "15", lendable: 25},
		{materialType: "DVD", policy: "DVDs, at most 3", limit: "3", lendable: 5},
	} {
		id := lib.findID(t, "material_type", "name", tt.materialType)
		policy := lib.findID(t, "loan_policy", "name", tt.policy)
		if rule := "m " + id + ": l " + policy + " "; !strings.Contains(readRules(t), "\n"+rule) {
			t.Errorf("the rules have no line that starts %q: without the material type in it the limit would not count", rule)
		}
		for _, p := range lib["loan_policy"] {
			if got := p.Object("loansPolicy")["itemLimit"]; p.ID() == policy &&
				(got == nil || got.(json.Number).String() != tt.limit) {
				t.Errorf("%s: got itemLimit %v, want %s", tt.policy, got, tt.limit)
			}
		}
		circulates := lib.findID(t, "loan_type", "name", "Can circulate")
		lendable := 0
		for _, i := range lib["item"] {
			if i.Text("materialTypeId") == id && i.Text("permanentLoanTypeId") == circulates &&
				i.Text("status.name") == "Available" {
				lendable++
			}
		}
		if lendable < tt.lendable {
			t.Errorf("got %d items of type %s to lend, want at least %d", lendable, tt.materialType, tt.lendable)
		}
	}
}
