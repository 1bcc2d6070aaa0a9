package jsonschema_test

import (
	"testing"
	"time"

	"checkoutlock/schemas/jsonschema"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // "" is refused
		"2026-08-22T10:11:12Z":              "2026-08-22T10:11:12Z",
		"2026-08-22T10:11:12.345Z":          "2026-08-22T10:11:12.345Z",
		"2026-08-22T10:11:12.345+00:00":     "2026-08-22T10:11:12.345Z",
		"2026-08-22T10:11:12.345+0200":      "2026-08-22T08:11:12.345Z",
		"2026-08-22T10:11:12.345-05:30":     "2026-08-22T15:41:12.345Z",
		"2026-08-22T10:11:12":               "2026-08-22T10:11:12Z",
		"2026-08-22":                        "2026-08-22T00:00:00Z",
		"2024-02-29":                        "2024-02-29T00:00:00Z",
		"2023-02-29":                        "",
		"2026-13-01":                        "",
		"2026-08-22T25:00:00Z":              "",
		"2026-08-22T1:00:00Z":               "",
		"2026-08-22T10:11:12,345Z":          "",
		"2026-08-22T10:11:12+23:59":         "",
		"2026-08-22T10:11:12.1234567890Z":   "",
		"2026-08-22 10:11:12":               "",
		"0000-01-01":                        "",
		"0001-01-01T00:00:00+01:00":         "", // year 0 in UTC
		"9999-12-31T23:59:59-15:00":         "", // year 10000 in UTC
		"12026-08-22":                       "",
		"now":                               "",
		"infinity":                          "",
		"":                                  "",
		"2026-08-22T10:11:12Z'; DROP TABLE": "",
	}
	for sent, want := range tests {
		got, err := jsonschema.ParseTime(sent)
		if (err == nil) != (want != "") {
			t.Errorf("%q: error %v, want accepted %t", sent, err, want != "")
			continue
		}
		if err == nil && got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: got %s, want %s", sent, got.UTC().Format(time.RFC3339Nano), want)
		}
	}
}

// A time that is accepted can be written in UTC and read again.
func FuzzParseTime(f *testing.F) {
	for _, sent := range []string{
		"2026-08-22T10:11:12.345Z", "2026-08-22T10:11:12.345-05:30", "2026-08-22T10:11:12+0200", "2024-02-29",
		"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999+15:59",
		"9999-12-31T23:59:59-15:00",
	} {
		f.Add(sent)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		at, err := jsonschema.ParseTime(sent)
		if err != nil {
			return
		}
		written := at.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
		if again, err := jsonschema.ParseTime(written); err != nil || !again.Equal(at) {
			t.Errorf("%q is written as %s, which is read as %s, %v", sent, written, again, err)
		}
	})
}
