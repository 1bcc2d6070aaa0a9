package jsonschema

import "testing"

// What the quick check allows, the library allows too.
func FuzzAllows(f *testing.F) {
	names := Names()
	for i := range names {
		f.Add(i, []byte(`{}`))
	}
	for _, doc := range []string{
		`{"id":"0bab56e5-1ab6-4ac2-afdf-8b2df0434378","status":{"name":"Open"},"dueDate":"2026-08-22","renewalCount":-0}`,
		`{"userId":"0bab56e5-1ab6-4ac2-afdf-8b2df0434378","ttlMs":600001,"waitMs":1e1}`,
		`{"limits":[{"max":15,"lost":true},7]}`,
		`{"requests":[],"_version":2.0,"name":"\u00e4"}`, `[]`, `"a"`, `9223372036854775808`,
	} {
		for i := range names {
			f.Add(i, []byte(doc))
		}
	}
	f.Fuzz(func(t *testing.T, schema int, text []byte) {
		doc, err := Decode(text)
		if err != nil {
			return
		}
		name := names[uint(schema)%uint(len(names))]
		s, err := find(name)
		if err != nil {
			t.Fatal(err)
		}
		if !allows(s, doc) {
			return
		}
		if err := s.Validate(doc); err != nil {
			t.Errorf("the quick check of %s allows %s: %v", name, text, err)
		}
	})
}
