package schemas_test

import (
	"strings"
	"testing"

	"checkoutlock/schemas"
)

func TestParseChangeReason(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", schemas.MaxChangeReason)
	tests := map[string]struct{ given, want, err string }{
		"plain":            {"exams", "exams", ""},
		"empty":            {"", "", ""},
		"nothing but room": {" \r\n\t ", "", ""},
		"from a form":      {"exams\r\n\tuntil May\r\n", "exams\n\tuntil May", ""},
		"just fits":        {" " + long + " ", long, ""},
		"too long":         {long + "x", "", "must have at most 500 characters, not 501"},
		"a NUL":            {"a\x00b", "", "must have no control characters but line breaks and tabs"},
		"no UTF-8":         {"a\xffb", "", "must have no control characters but line breaks and tabs"},
		"a lone return":    {"a\rb", "", "must have no control characters but line breaks and tabs"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := schemas.ParseChangeReason(tt.given)
			if text := errText(err); got != tt.want || text != tt.err {
				t.Errorf("got %q, error %q; want %q, error %q", got, text, tt.want, tt.err)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
