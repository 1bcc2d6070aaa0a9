package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"checkoutlock/web"
)

// exactBody has what bodies of check-outs have: nested objects, lists, numbers.
type exactBody struct {
	Item   string          `json:"itemBarcode"`
	Blocks *exactBlocks    `json:"overrideBlocks"`
	List   []exactBlocks   `json:"list"`
	Raw    json.RawMessage `json:"raw"`
	Large  int64           `json:"large"`
	Hidden string          `json:"-"`
}

type exactBlocks struct {
	Comment string    `json:"comment"`
	Limit   *struct{} `json:"itemLimitBlock"`
}

func TestDecodeExact(t *testing.T) {
	t.Parallel()
	h := service(func(c echo.Context) error {
		var v exactBody
		if err := web.DecodeExact(c, &v); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, v)
	}, func(o *web.Options) { o.BodyLimit = 1 << 20 })
	const none = `{"itemBarcode":"","overrideBlocks":null,"list":null,"raw":null,"large":0}`
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{
			name: "all properties", body: `{"itemBarcode":"i","overrideBlocks":{"comment":"c","itemLimitBlock":{}},` +
				`"list":[{"comment":"<d>"}],"raw":{"A":1,"a":2},"large":9007199254740993}`, status: 200,
			want: `{"itemBarcode":"i","overrideBlocks":{"comment":"c","itemLimitBlock":{}},"list":[{"comment":"<d>",` +
				`"itemLimitBlock":null}],"raw":{"A":1,"a":2},"large":9007199254740993}`,
		},
		{name: "unknown properties", body: `{"more":{"itemBarcode":"x"},"":1,"-":"h","Hidden":"h"}`, status: 200, want: none},
		{
			name: "another case is unknown", body: `{"ItemBarcode":"x","ITEMBARCODE":"y","overrideblocks":{}}`, status: 200,
			want: none,
		},
		{
			name: "another case behind the exact one", body: `{"itemBarcode":"i","ITEMBARCODE":"x"}`, status: 200,
			want: `{"itemBarcode":"i",`,
		},
		{
			name: "another case before the exact one", body: `{"ITEMBARCODE":"x","itemBarcode":"i"}`, status: 200,
			want: `{"itemBarcode":"i",`,
		},
		{
			name: "a letter that folds to k or s", body: "{\"li\u017ft\":[{}],\"overrideBloc\u212as\":{}}", status: 200,
			want: none,
		},
		{
			name: "another case inside", body: `{"overrideBlocks":{"comment":"c","COMMENT":"x"},"list":[{"Comment":"x"}]}`,
			status: 200,
			want: `{"itemBarcode":"","overrideBlocks":{"comment":"c","itemLimitBlock":null},"list":[{"comment":"",` +
				`"itemLimitBlock":null}]`,
		},
		{
			name: "a repeat", body: `{"itemBarcode":"i","itemBarcode":"i"}`, status: 400,
			want: "The body has the property itemBarcode more than once in one object",
		},
		{
			name: "a repeat by another escape", body: `{"itemBarcode":"i","item\u0042arcode":"j"}`, status: 400,
			want: "the property itemBarcode more than once",
		},
		{
			name: "a repeat inside", body: `{"overrideBlocks":{"comment":"c","itemLimitBlock":{},"comment":"d"}}`, status: 400,
			want: "the property comment more than once",
		},
		{
			name: "a repeat in a list", body: `{"list":[{"comment":"c"},{"comment":"c","comment":"d"}]}`, status: 400,
			want: "the property comment more than once",
		},
		{name: "a repeat of an unknown property", body: `{"x":1,"x":2}`, status: 400, want: "the property x more than once"},
		{
			name: "the same name in two objects",
			body: `{"list":[{"comment":"c"},{"comment":"d"}],"overrideBlocks":{"comment":"e"}}`, status: 200,
			want: `"comment":"e"`,
		},
		{name: "null", body: `null`, status: 200, want: none},
		{name: "a list", body: `[]`, status: 400, want: "the body must be of type object, not array"},
		{
			name: "a number for text", body: `{"overrideBlocks":{"comment":1}}`, status: 400,
			want: "overrideBlocks.comment must be of type string, not number",
		},
		{
			name: "a number too large", body: `{"large":9223372036854775808}`, status: 400,
			want: "large must be of type integer",
		},
		{name: "no JSON", body: `{"itemBarcode":`, status: 400, want: "not valid JSON"},
		{
			name: "deep, with long names",
			body: strings.Repeat(`{"`+strings.Repeat("n", 90)+`":`, 9000) + "1" + strings.Repeat("}", 9000), status: 200,
			want: none,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := post(t, h, tt.body)
			if got := strings.TrimSpace(w.Body.String()); w.Code != tt.status || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %.300s, want %d with %s", w.Code, got, tt.status, tt.want)
			}
		})
	}
}

// A body is refused as the caller's mistake, or each value is that of its one property.
func FuzzDecodeExact(f *testing.F) {
	for _, body := range []string{
		`{"itemBarcode":"i","overrideBlocks":{"comment":"c","itemLimitBlock":{}},"list":[{}],"raw":[1],"large":1}`,
		`{"itemBarcode":"i","itemBarcode":"j"}`, `{"ITEMBARCODE":"i"}`, `{"item\u0042arcode":"i"}`, `{"large":1e3}`,
		`null`, ` `,
		`{"list":[{"comment":"a","Comment":"b"}]}`, `[]`, `{} {}`,
	} {
		f.Add([]byte(body))
	}
	var read *exactBody
	h := service(func(c echo.Context) error {
		var v exactBody
		if err := web.DecodeExact(c, &v); err != nil {
			return err
		}
		read = &v
		return c.NoContent(http.StatusNoContent)
	}, func(o *web.Options) { o.BodyLimit = 1 << 20 })
	f.Fuzz(func(t *testing.T, body []byte) {
		read = nil
		w := post(t, h, string(body))
		if read == nil {
			if w.Code != http.StatusBadRequest && w.Code != http.StatusRequestEntityTooLarge {
				t.Errorf("got %d %s for %q, want a 4xx", w.Code, w.Body, body)
			}
			return
		}
		var properties map[string]json.RawMessage
		if err := json.Unmarshal(body, &properties); err != nil {
			t.Fatalf("%q was read: %v", body, err)
		}
		var item string
		if sent := properties["itemBarcode"]; sent != nil && json.Unmarshal(sent, &item) != nil || item != read.Item {
			t.Errorf("the item of %q is %q", body, read.Item)
		}
	})
}
