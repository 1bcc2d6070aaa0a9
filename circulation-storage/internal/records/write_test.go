package records_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

func TestType_ParseReadsTheIDFromBodyOrPath(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, path, want string }{
		{name: "body", body: `{"id":"` + idA + `"}`, path: "", want: idA},
		{name: "body in capitals", body: `{"id":"` + strings.ToUpper(idA) + `"}`, path: "", want: idA},
		{name: "path", body: `{}`, path: idA, want: idA},
		{name: "null in the body", body: `{"id":null}`, path: idA, want: idA},
		{name: "both", body: `{"id":"` + idA + `"}`, path: strings.ToUpper(idA), want: idA},
		{name: "both and different", body: `{"id":"` + idA + `"}`, path: idB, want: ""},
	}
	for _, tc := range tests {
		got, err := records.User.Parse([]byte(tc.body), tc.path)
		if (err != nil) != (tc.want == "") || (err != nil && !fault.Is(err, fault.Invalid)) || got.ID() != tc.want {
			t.Errorf("%s: got %q, %v, want %q", tc.name, got.ID(), err, tc.want)
		}
	}
	first, _ := records.User.Parse([]byte(`{}`), "")
	second, _ := records.User.Parse([]byte(`{}`), "")
	if len(first.ID()) != 36 || first.ID()[14] != '4' || first.ID() == second.ID() {
		t.Errorf("got ids %q and %q, want new ones of version 4", first.ID(), second.ID())
	}
}

func TestType_ParseRefusesBadBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]fault.Code{
		`[]`: fault.Invalid, `"x"`: fault.Invalid, `null`: fault.Invalid, `{`: fault.Malformed, ``: fault.Malformed,
		`{"barcode":7}`: fault.Invalid, `{"barcode":"\u0000"}`: fault.Invalid,
	} {
		if _, err := records.User.Parse([]byte(body), ""); !fault.Is(err, want) {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}

func TestType_CompleteSetsMetadata(t *testing.T) {
	t.Parallel()
	const sent = `{"group":"g","metadata":{"createdDate":"1999-01-01","createdByUserId":"idC","ours":1}}`
	tests := []struct{ name, stored, want string }{
		{
			name: "created", stored: ``,
			want: `{"createdDate":"NOW","createdByUserId":"idD","updatedDate":"NOW","updatedByUserId":"idD"}`,
		},
		{
			name: "updated", stored: `{"metadata":{"createdDate":"THEN","createdByUserId":"idA","updatedDate":"THEN",` +
				`"updatedByUserId":"idA"}}`,
			want: `{"createdDate":"THEN","createdByUserId":"idA","updatedDate":"NOW","updatedByUserId":"idD"}`,
		},
		{
			name: "created by the system", stored: `{"metadata":{"createdDate":"THEN"}}`,
			want: `{"createdDate":"THEN","updatedDate":"NOW","updatedByUserId":"idD"}`,
		},
		{
			name: "stored without metadata", stored: `{"group":"g"}`,
			want: `{"createdDate":"NOW","createdByUserId":"idD","updatedDate":"NOW","updatedByUserId":"idD"}`,
		},
	}
	for _, tc := range tests {
		got, err := complete(t, records.Usergroup, shelf{}, sent, tc.stored)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if want := record(t, strings.ReplaceAll(tc.want, "NOW", clockText)); !reflect.DeepEqual(got.Object("metadata"),
			want) {
			t.Errorf("%s: got %v, want %v", tc.name, got["metadata"], want)
		}
	}
	system := record(t, `{"group":"g"}`)
	if err := records.Usergroup.Complete(t.Context(), shelf{}, records.Write{Record: system, Now: clock()}); err != nil {
		t.Fatal(err)
	}
	if want := record(t, `{"createdDate":"`+clockText+`","updatedDate":"`+clockText+
		`"}`); !reflect.DeepEqual(system.Object("metadata"), want) {
		t.Errorf("a system call wrote %v, want %v", system["metadata"], want)
	}
}

func TestType_CompleteRequiresTheStoredVersion(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, sent, stored, want string }{ // want is the new version, or the message
		{name: "created", sent: ``, stored: ``, want: "1"},
		{name: "created with a version", sent: `,"_version":7`, stored: ``, want: "1"},
		{name: "the stored one", sent: `,"_version":4`, stored: `{"_version":4}`, want: "5"},
		{name: "the stored one as a fraction", sent: `,"_version":4.0`, stored: `{"_version":4}`, want: "5"},
		{
			name: "an old one", sent: `,"_version":3`, stored: `{"_version":4}`,
			want: "Stored _version is 4, _version of request is 3",
		},
		{
			name: "a future one", sent: `,"_version":5`, stored: `{"_version":4}`,
			want: "Stored _version is 4, _version of request is 5",
		},
		{name: "none", sent: ``, stored: `{"_version":4}`, want: "Stored _version is 4, _version of request is absent"},
		{name: "none, as stored", sent: ``, stored: `{"title":"moved from FOLIO"}`, want: "1"},
		{name: "none, where 0 is stored", sent: ``, stored: `{"_version":0}`, want: "_version of request is absent"},
		{
			name: "one that the stored has not", sent: `,"_version":1`, stored: `{"title":"moved from FOLIO"}`,
			want: "Stored _version is 0, _version of request is 1",
		},
	}
	for _, tc := range tests {
		got, err := complete(t, records.Instance, shelf{}, `{"title":"t"`+tc.sent+`}`, tc.stored)
		if err != nil {
			if len(tc.want) == 1 || !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
			}
			continue
		}
		if n, ok := got.Version(); !ok || strconv.Itoa(n) != tc.want {
			t.Errorf("%s: got version %d, want %s", tc.name, n, tc.want)
		}
	}
	user, err := complete(t, records.User, shelf{}, `{"_version":3}`, `{}`)
	if v, _ := user.Version(); err != nil || v != 3 {
		t.Errorf("a type without versions: got %d, %v, want 3 unchanged", v, err)
	}
}

func TestType_Violation(t *testing.T) {
	t.Parallel()
	item := record(t, `{"id":"idA","barcode":"123","materialTypeId":"idB","itemId":"idC","scope":"s","key":"k"}`)
	tests := []struct {
		typ             records.Type
		constraint, msg string
		code            fault.Code
		params          []fault.Parameter
	}{
		{
			typ: records.Item, constraint: "item_barcode_key", msg: "barcode value already exists in table item: 123",
			code:   fault.Invalid,
			params: []fault.Parameter{fault.Param("barcode", "123")},
		},
		{
			typ: records.Item, constraint: "item_pkey", msg: "id value already exists in table item: " +
				idA, code: fault.Invalid,
			params: []fault.Parameter{fault.Param("id", idA)},
		},
		{
			typ: records.Loan, constraint: "loan_open_item_id_key",
			msg: "Cannot have more than one open loan for the same item", code: fault.Invalid,
			params: []fault.Parameter{fault.Param("itemId", idC)},
		},
		{
			typ: records.Request, constraint: "request_item_id_position_key", // the record has no position
			msg: "Cannot have more than one request with the same position in the queue", code: fault.Invalid,
			params: []fault.Parameter{fault.Param("itemId", idC)},
		},
		{
			typ: records.SettingsEntry, constraint: "settings_entry_scope_key_user_id_key",
			msg:  "There is an entry with this scope, key and userId already",
			code: fault.Forbidden, params: nil,
		},
		{
			typ: records.SettingsEntry, constraint: "settings_entry_pkey",
			msg: "id value already exists in table settings_entry: " + idA, code: fault.Forbidden, params: nil,
		},
	}
	for _, tc := range tests {
		var f *fault.Error
		if !errors.As(tc.typ.Violation(tc.constraint, item), &f) || f.Code != tc.code || f.Msg != tc.msg {
			t.Errorf("%s: got %+v, want %s %s", tc.constraint, f, tc.code, tc.msg)
			continue
		}
		if tc.params == nil {
			if len(f.Details) != 0 {
				t.Errorf("%s: got %+v, want plain text", tc.constraint, f.Details)
			}
			continue
		}
		want := []fault.Detail{{Message: tc.msg, Type: "1", Code: "-1", Parameters: tc.params}}
		if !reflect.DeepEqual(f.Details, want) {
			t.Errorf("%s: got %+v, want %+v", tc.constraint, f.Details, want)
		}
	}
	if err := records.Item.Violation("loan_pkey", item); err != nil {
		t.Errorf("another type's constraint: got %v, want nil", err)
	}
	for _, typ := range records.Types() {
		for _, u := range typ.Unique {
			if typ.Violation(u.Constraint, item) == nil {
				t.Errorf("%s has no message", u.Constraint)
			}
		}
	}
}

func TestReference_NamesBothRecords(t *testing.T) {
	t.Parallel()
	typ, ref, ok := records.FindReference("item_holdings_record_id_fkey")
	if !ok || typ.Table != "item" || ref.Field != "holdingsRecordId" {
		t.Fatalf("got %s %+v, %t", typ.Name, ref, ok)
	}
	const still = "Cannot delete holdings_record.id = " + idA + " because id is still referenced from table item."
	for by, want := range map[string]string{
		"": still, idB: still + " The item " + idB + " names it in holdingsRecordId.",
	} {
		var f *fault.Error
		if err := ref.StillNamed(typ, by, idA); !errors.As(err, &f) || f.Code != fault.Invalid || f.Msg != want {
			t.Errorf("by %q: got %v, want %s", by, f, want)
		}
	}
	if _, _, ok := records.FindReference("nonsense"); ok {
		t.Error("found an unknown constraint")
	}
}

// A record is refused as the caller's mistake, or it is read again as it is stored.
func FuzzType_Parse(f *testing.F) {
	types := records.Types()
	for i := range types {
		for _, body := range []string{
			`{}`,
			`{"id":"0BAB56E5-1AB6-4ac2-afdf-8b2df0434378","name":"a","_version":1,"status":{"name":"Open"},"code":null}`, `[]`,
			`{"barcode":"\u0000","personal":{"lastName":"b"},"patronGroup":"0bab56e5-1ab6-4ac2-afdf-8b2df0434378"}`,
		} {
			f.Add(i, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, at int, body []byte) {
		typ := types[uint(at)%uint(len(types))]
		r, err := typ.Parse(body, "")
		if code := fault.CodeOf(err); err != nil {
			if code != fault.Malformed && code != fault.Invalid {
				t.Errorf("%s %q: %v", typ.Name, body, err)
			}
			return
		}
		stored, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := typ.Parse(stored, r.ID()); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s %q is stored as %s, which is read as %v, %v", typ.Name, body, stored, again, err)
		}
	})
}
