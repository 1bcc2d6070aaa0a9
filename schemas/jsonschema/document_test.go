package jsonschema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

func TestDecode_DropsNullsAndKeepsNumbers(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"a":null,"b":{"c":null,"d":1}}`:   `{"b":{"d":1}}`,
		`{"a":[null,{"b":null}]}`:           `{"a":[null,{}]}`,
		`{"a":12345678901234567890.123456}`: `{"a":12345678901234567890.123456}`,
		`{"a":1.50,"b":-0,"c":1e30}`:        `{"a":1.50,"b":-0,"c":1e30}`,
		`{"a":"\ud83d\ude00 \\u0000 \/"}`:   `{"a":"😀 \\u0000 /"}`,
		` null `:                            `null`,
	}
	for sent, want := range tests {
		v, err := jsonschema.Decode([]byte(sent))
		if err != nil {
			t.Errorf("%s: %v", sent, err)
			continue
		}
		if got, _ := json.Marshal(v); string(got) != want {
			t.Errorf("%s: got %s, want %s", sent, got, want)
		}
	}
}

// A list takes as long within many lists as alone.
func BenchmarkDecode(b *testing.B) {
	list := "[1" + strings.Repeat(",1", 50_000) + "]"
	nested := strings.Repeat("[", 90) + list + strings.Repeat("]", 90)
	for name, doc := range map[string]string{"flat": list, "nested": nested} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := jsonschema.Decode([]byte(doc)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestDecode_RefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	deep := func(levels int) string { return strings.Repeat(`[`, levels) + strings.Repeat(`]`, levels) }
	tests := []struct {
		name, sent string
		code       fault.Code
		want       string // part of the message; "" for accepted
	}{
		{name: "NUL", sent: `{"a":"x\u0000"}`, code: fault.Invalid, want: `\u0000 at byte 7`},
		{name: "NUL in a key", sent: `{"\u0000":1}`, code: fault.Invalid, want: `\u0000 at byte 2`},
		{name: "high surrogate alone", sent: `{"a":"\ud83d"}`, code: fault.Invalid, want: `\ud83d at byte 6`},
		{name: "high surrogate before another character", sent: `{"a":"\ud83d\u0041"}`, code: fault.Invalid, want: `\ud83d`},
		{name: "high surrogate before the rest of one", sent: `{"a":"\ud83dxude00"}`, code: fault.Invalid, want: `\ud83d`},
		{name: "character behind the surrogates", sent: `{"a":"\ue000"}`, code: "", want: ""},
		{name: "low surrogate alone", sent: `{"a":"\uDE00"}`, code: fault.Invalid, want: `\uDE00`},
		{name: "surrogates the wrong way round", sent: `{"a":"\ude00\ud83d"}`, code: fault.Invalid, want: `\ude00`},
		{name: "escape at the very end", sent: `"\ud83d"`, code: fault.Invalid, want: `\ud83d at byte 1`},
		{
			name: "exponent that fills the memory", sent: `{"a":[0,1e999999999]}`, code: fault.Invalid,
			want: "a[1] is too long a number: 300 digits",
		},
		{
			name: "exponent beyond int", sent: `{"a":1e99999999999999999999}`, code: fault.Invalid,
			want: "a is too long a number",
		},
		{name: "exponent of the largest int", sent: `1e9223372036854775807`, code: fault.Invalid, want: "is too long"},
		{name: "tiny number", sent: `{"a":1E-9999}`, code: fault.Invalid, want: "a is too long a number"},
		{
			name: "301 digits", sent: `{"a":` + strings.Repeat("9", 301) + `}`, code: fault.Invalid,
			want: "a is too long a number",
		},
		{name: "300 digits", sent: `{"a":-` + strings.Repeat("9", 299) + `.5}`, code: "", want: ""},
		{name: "301 digits with the exponent", sent: `{"a":1.5e299}`, code: fault.Invalid, want: "a is too long a number"},
		{name: "300 digits with the exponent", sent: `{"a":-1.5e-298}`, code: "", want: ""},
		{name: "101 levels", sent: deep(101), code: fault.Invalid, want: "is nested too deeply: 100 levels"},
		{name: "100 levels", sent: deep(100), code: "", want: ""},
		{name: "10001 levels", sent: deep(10001), code: fault.Malformed, want: "not valid JSON"},
		{name: "no JSON", sent: `{"a":`, code: fault.Malformed, want: "not valid JSON"},
		{name: "two values", sent: `{} {}`, code: fault.Malformed, want: "something after its JSON value"},
		{name: "garbage after", sent: `{}]`, code: fault.Malformed, want: "something after its JSON value"},
		{name: "nothing", sent: ``, code: fault.Malformed, want: "not valid JSON"},
		{name: "Latin-1", sent: "{\"a\":\"b\xfccher\"}", code: fault.Malformed, want: "not valid UTF-8"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := jsonschema.Decode([]byte(tc.sent))
			if got := fault.CodeOf(err); got != tc.code {
				t.Fatalf("got code %q (%v), want %q", got, err, tc.code)
			}
			if err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say %q", err, tc.want)
			}
			if err != nil && len(err.Error()) > 600 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

// A document that passes can be stored, read and sent again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"a":[null,1.50,{"b":null}]}`, `"\ud83d\ude00"`, `"\\\u0000"`, `"\ud83d\\ude00"`, `1e300`, `-0.0e-0`, `[[[]]]`,
		"\"\u2028<\"", `{"":""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		first, err := jsonschema.Decode(doc)
		if err != nil {
			if code := fault.CodeOf(err); code != fault.Malformed && code != fault.Invalid {
				t.Fatalf("%q: %v is not the client's fault", doc, err)
			}
			return
		}
		again, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := jsonschema.Decode(again)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("%q came back as %q: %v", doc, again, err)
		}
	})
}

func TestDecodeObject_RefusesOtherDocuments(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"a":null,"b":1.50}`: "",
		`[1]`:                 "The body must be a JSON object, not [1]",
		`null`:                "The body must be a JSON object, not null",
		`{`:                   "The body is not valid JSON: unexpected EOF",
		`{"a":tru}`:           "The body is not valid JSON: invalid character '}' in literal true (expecting 'e') at byte 9",
	} {
		object, err := jsonschema.DecodeObject([]byte(doc))
		switch {
		case want == "" && (err != nil || len(object) != 1 || object["b"] != json.Number("1.50")):
			t.Errorf("%s: got %v, %v", doc, object, err)
		case want != "" && (!fault.Is(err, fault.Malformed) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", doc, err, want)
		}
	}
}
