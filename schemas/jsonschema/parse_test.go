package jsonschema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// No other check of JSON comes before parse, and the checks behind it rely on valid JSON.
func FuzzParse_AsEncodingJSON(f *testing.F) {
	for _, doc := range []string{
		`{}`, ` [1,-0.50e+7,"\u00e4\/",true,null] `, `{"a":{"b":[]},"a":2}`, `"\ud800"`, "\"\u2028\"",
		``, ` `, `{`, `[[`, `[]]`, `{} {}`, `{,}`, `[1,]`, `{"a":1,}`, `{"a" 1}`, `{"a":}`, `{a:1}`, `[1 2]`,
		`01`, `-`, `-01`, `+1`, `1.`, `.5`, `1e`, `1e+`, `0x10`, `NaN`, `nul`, `truee`, `'a'`, `"a`, `"a\`,
		`"\x"`, `"\u12"`, "\"\n\"", "\"\x01\"", "\v1", "1\f", "\x001", "\ufeff1",
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := parse(doc)
		if (err == nil) != json.Valid(doc) {
			t.Fatalf("%q: got %v, %v", doc, v, err)
		}
		if err != nil {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(doc))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("%q: got %v, want %v (%v)", doc, v, want, err)
		}
	})
}
