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
		"plain":            {given: "exams", want: "exams", err: ""},
		"empty":            {given: "", want: "", err: ""},
		"nothing but room": {given: " \r\n\t ", want: "", err: ""},
		"from a form":      {given: "exams\r\n\tuntil May\r\n", want: "exams\n\tuntil May", err: ""},
		"just fits":        {given: " " + long + " ", want: long, err: ""},
		"too long":         {given: long + "x", want: "", err: "must have at most 500 characters, not 501"},
		"a NUL":            {given: "a\x00b", want: "", err: "must have no control characters but line breaks and tabs"},
		"no UTF-8":         {given: "a\xffb", want: "", err: "must have no control characters but line breaks and tabs"},
		"a lone return":    {given: "a\rb", want: "", err: "must have no control characters but line breaks and tabs"},
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
