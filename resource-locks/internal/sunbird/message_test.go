package sunbird

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// A body is refused with a text, or its texts are what PostgreSQL can hold.
func FuzzParseMessage(f *testing.F) {
	for _, sent := range []string{
		``, body("resourceId", "do_1", "resourceType", "content"), `{"request":""}`,
		`{"request":{"filters":{"resourceId":["a",""]}}}`,
		`{"request":7}`, `{"request":{"resourceId":"\u0000"}}`, `{"params":[],"request":{"filters":7}}`, `[]`, "\xff",
		`{"request":{"a":1},"Request":{"resourceId":"b"}}`,
	} {
		f.Add(sent)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		m, err := parseMessage(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(sent)))
		if err != nil {
			if err.Error() == "" {
				t.Errorf("%q is refused without a reason", sent)
			}
			return
		}
		names, problem := m.readFilter()
		if problem != "" && names != nil {
			t.Errorf("%q has the filter %q and the problem %s", sent, names, problem)
		}
		text, problem := m.readText("resourceId")
		if (text == "") != (problem != "") {
			t.Errorf("%q has the id %q and the problem %q", sent, text, problem)
		}
		for _, text := range append(names, text, m.messageID()) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Errorf("%q has the text %q", sent, text)
			}
		}
	})
}
