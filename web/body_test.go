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
			"all properties", `{"itemBarcode":"i","overrideBlocks":{"comment":"c","itemLimitBlock":{}},"list":[{"comment":"<d>"}],"raw":{"A":1,"a":2},"large":9007199254740993}`, 200,
			`{"itemBarcode":"i","overrideBlocks":{"comment":"c","itemLimitBlock":{}},"list":[{"comment":"\u003cd\u003e","itemLimitBlock":null}],"raw":{"A":1,"a":2},"large":9007199254740993}`,
		},
		{"unknown properties", `{"more":{"itemBarcode":"x"},"":1,"-":"h","Hidden":"h"}`, 200, none},
		{"another case is unknown", `{"ItemBarcode":"x","ITEMBARCODE":"y","overrideblocks":{}}`, 200, none},
		{"another case behind the exact one", `{"itemBarcode":"i","ITEMBARCODE":"x"}`, 200, `{"itemBarcode":"i",`},
		{"another case before the exact one", `{"ITEMBARCODE":"x","itemBarcode":"i"}`, 200, `{"itemBarcode":"i",`},
		{"a letter that folds to k or s", "{\"li\u017ft\":[{}],\"overrideBloc\u212as\":{}}", 200, none},
		{"another case inside", `{"overrideBlocks":{"comment":"c","COMMENT":"x"},"list":[{"Comment":"x"}]}`, 200, `{"itemBarcode":"","overrideBlocks":{"comment":"c","itemLimitBlock":null},"list":[{"comment":"","itemLimitBlock":null}]`},
		{"a repeat", `{"itemBarcode":"i","itemBarcode":"i"}`, 400, "The body has the property itemBarcode more than once in one object"},
		{"a repeat by another escape", `{"itemBarcode":"i","item\u0042arcode":"j"}`, 400, "the property itemBarcode more than once"},
		{"a repeat inside", `{"overrideBlocks":{"comment":"c","itemLimitBlock":{},"comment":"d"}}`, 400, "the property comment more than once"},
		{"a repeat in a list", `{"list":[{"comment":"c"},{"comment":"c","comment":"d"}]}`, 400, "the property comment more than once"},
		{"a repeat of an unknown property", `{"x":1,"x":2}`, 400, "the property x more than once"},
		{"the same name in two objects", `{"list":[{"comment":"c"},{"comment":"d"}],"overrideBlocks":{"comment":"e"}}`, 200, `"comment":"e"`},
		{"null", `null`, 200, none},
		{"a list", `[]`, 400, "the body must be of type object, not array"},
		{"a number for text", `{"overrideBlocks":{"comment":1}}`, 400, "overrideBlocks.comment must be of type string, not number"},
		{"a number too large", `{"large":9223372036854775808}`, 400, "large must be of type integer"},
		{"no JSON", `{"itemBarcode":`, 400, "not valid JSON"},
		{"deep, with long names", strings.Repeat(`{"`+strings.Repeat("n", 90)+`":`, 9000) + "1" + strings.Repeat("}", 9000), 200, none},
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
