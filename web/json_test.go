package web_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

type inner struct {
	Text string `json:"text"`
}

// embedding has the fields of another.
type embedding struct {
	inner
	Raw json.RawMessage `json:"raw"`
}

// rendered writes itself.
type rendered struct {
	Raw json.RawMessage `json:"raw"`
}

func (rendered) MarshalJSON() ([]byte, error) { return []byte(`"rendered"`), nil }

// unwritable cannot be written.
type unwritable struct {
	Raw  json.RawMessage `json:"raw"`
	Func func()          `json:"func"`
}

// everything has a field of each kind.
type everything struct {
	Raw      json.RawMessage   `json:"raw"`
	Absent   json.RawMessage   `json:"absent,omitempty"`
	NoRaw    json.RawMessage   `json:"noRaw"`
	List     []json.RawMessage `json:"list"`
	NoList   []json.RawMessage `json:"noList"`
	Empty    []json.RawMessage `json:"empty,omitempty"`
	Text     string            `json:"text,omitempty"`
	NoText   string            `json:"noText,omitempty"`
	Number   int               `json:"number"`
	Zero     int               `json:"zero,omitempty"`
	Yes      bool              `json:"yes,omitempty"`
	Nested   *everything       `json:"nested,omitempty"`
	Inner    inner             `json:"inner,omitempty"`
	Map      map[string]int    `json:"map,omitempty"`
	NoMap    map[string]int    `json:"noMap,omitempty"`
	Time     time.Time         `json:"time,omitempty"`
	Rendered rendered          `json:"rendered"`
}

func TestJSON(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"a": "<b>", "n": 1.50}`)
	tests := map[string]struct {
		answer any
		want   string // "" for what encoding/json writes
	}{
		"nothing":                {answer: nil, want: ""},
		"a text":                 {answer: "<b>", want: ""},
		"a JSON value":           {answer: raw, want: string(raw)},
		"no JSON value":          {answer: json.RawMessage(nil), want: ""},
		"a list of JSON values":  {answer: []json.RawMessage{raw, raw}, want: `[` + string(raw) + `,` + string(raw) + `]`},
		"no list of JSON values": {answer: []json.RawMessage(nil), want: ""},
		"a struct with a JSON value": {
			answer: struct {
				Text string          `json:"text"`
				Raw  json.RawMessage `json:"raw"`
			}{Text: "<b>", Raw: raw},
			want: `{"text":"<b>","raw":` + string(raw) + `}`,
		},
		"a struct of all kinds": {
			answer: everything{
				Raw: json.RawMessage(`1`), List: []json.RawMessage{json.RawMessage(`{}`), nil}, Empty: []json.RawMessage{},
				Text: "\u2028", Number: -1, Yes: true, Nested: &everything{}, Map: map[string]int{"a": 1},
			},
			want: "",
		},
		"an empty struct of all kinds": {answer: everything{}, want: ""},
		"a struct that embeds another": {answer: embedding{Raw: json.RawMessage(`1`)}, want: ""},
		"a struct that writes itself":  {answer: rendered{Raw: raw}, want: ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			if want == "" {
				var text bytes.Buffer
				encoder := json.NewEncoder(&text)
				encoder.SetEscapeHTML(false)
				if err := encoder.Encode(tt.answer); err != nil {
					t.Fatal(err)
				}
				want = strings.TrimSuffix(text.String(), "\n")
			}
			w := post(t, service(func(c echo.Context) error { return c.JSON(http.StatusCreated, tt.answer) }, nil), "{}")
			if got := w.Body.String(); got != want+"\n" || w.Code != http.StatusCreated {
				t.Errorf("answered %d %s, want 201 %s", w.Code, got, want)
			}
			if got := w.Header().Get("Content-Length"); got != strconv.Itoa(len(want)+1) {
				t.Errorf("Content-Length is %q, want %d", got, len(want)+1)
			}
		})
	}
}

func TestJSON_SendsALargeAnswerInOnePiece(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 100_000)
	h := service(func(c echo.Context) error { return c.JSON(http.StatusOK, text) }, nil)
	for range 2 {
		if w := post(t, h, "{}"); w.Header().Get("Content-Length") != "100003" || w.Body.Len() != 100_003 {
			t.Errorf("Content-Length is %s for %d bytes, want 100003", w.Header().Get("Content-Length"), w.Body.Len())
		}
	}
}

func TestJSON_FailsBeforeItAnswers(t *testing.T) {
	t.Parallel()
	h := service(func(c echo.Context) error {
		return c.JSON(http.StatusOK, unwritable{Raw: json.RawMessage(`1`), Func: func() {}})
	}, nil)
	w := post(t, h, "{}")
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "raw") {
		t.Errorf("answered %d %s, want 500 without a part of the answer", w.Code, w.Body.String())
	}
}
