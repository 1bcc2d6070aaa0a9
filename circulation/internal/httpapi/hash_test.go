package httpapi

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestHashBody(t *testing.T) {
	t.Parallel()
	const base = `{"a":"é","b":{"c":[1,2.50],"d":null}}`
	tests := map[string]struct {
		body string
		same bool
	}{
		"spaces and order":     {" {\n\"b\" : {\"d\":null,\"c\":[1, 2.50]}, \"a\":\"é\"}", true},
		"another escape":       {`{"a":"\u00e9","b":{"c":[1,2.50],"d":null}}`, true},
		"another value":        {`{"a":"e","b":{"c":[1,2.50],"d":null}}`, false},
		"another order of two": {`{"a":"é","b":{"c":[2.50,1],"d":null}}`, false},
		"one property more":    {`{"a":"é","b":{"c":[1,2.50],"d":null},"e":1}`, false},
		"text for a number":    {`{"a":"é","b":{"c":["1",2.50],"d":null}}`, false},
	}
	want, err := hashBody([]byte(base))
	if err != nil || len(want) != 64 {
		t.Fatalf("got %q, %v", want, err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := hashBody([]byte(tt.body)); err != nil || (got == want) != tt.same {
				t.Errorf("got %s, %v; the other is %s, want the same: %t", got, err, want, tt.same)
			}
		})
	}
	if big, _ := hashBody([]byte(`[9007199254740993]`)); big == mustHash(t, `[9007199254740992]`) {
		t.Error("two large numbers look the same")
	}
}

func mustHash(t *testing.T, body string) string {
	t.Helper()
	got, err := hashBody([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Spaces do not change a hash, and a body that has one is JSON.
func FuzzHashBody(f *testing.F) {
	for _, body := range []string{
		`{"a":"é","b":{"c":[1,2.50],"d":null}}`, `[9007199254740993]`, `"\ud800"`, `{"":1e400}`, "\"\u2028<\"", `[[[]]]`, `{`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) { // which web.ReadUnique refuses
			return
		}
		want, err := hashBody(body)
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, body, "\n", "\t"); err != nil {
			t.Fatal(err)
		}
		if got, err := hashBody(spaced.Bytes()); err != nil || got != want {
			t.Errorf("%q has the hash %s, and with spaces %s, %v", body, want, got, err)
		}
	})
}
