package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestRoutes_ADifferentCheckOutNeverHasTheHashOfAnother(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, first, second string }{
		{
			name: "another order of two cases", first: `"userBarcode":"ann","USERBARCODE":"ben"`,
			second: `"USERBARCODE":"ben","userBarcode":"ann"`,
		},
		{
			name: "another order of three cases", first: `"userbarcode":"ann","userBarcode":"ben","Userbarcode":"cat"`,
			second: `"userBarcode":"ben","Userbarcode":"cat","userbarcode":"ann"`,
		},
		{name: "a repeat", first: `"userBarcode":"ann"`, second: `"userBarcode":"ben","userBarcode":"ann"`},
		{
			name: "a repeat in another order", first: `"userBarcode":"ann","userBarcode":"ben"`,
			second: `"userBarcode":"ben","userBarcode":"ann"`,
		},
		{
			name: "inside", first: `"userBarcode":"ann","overrideBlocks":{"comment":"a","COMMENT":"b"}`,
			second: `"userBarcode":"ann","overrideBlocks":{"COMMENT":"b","comment":"a"}`,
		},
		{name: "another patron", first: `"userBarcode":"ann"`, second: `"userBarcode":"ben"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			type meant struct{ user, comment, hash string }
			var lent []meant
			for _, part := range []string{tt.first, tt.second} {
				k := &kept{}
				b := &backend{keys: k, extra: withKey("a key")}
				status, _, answer := b.send(t, "POST", checkOutPath, `{"itemBarcode":"036","servicePointId":"s",`+part+`}`)
				switch status {
				case http.StatusCreated:
					lent = append(lent, meant{b.asked.UserBarcode, b.asked.OverrideBlocks.Comment, k.asked[0].BodyHash})
				case http.StatusBadRequest:
					if !strings.Contains(answer, "the property userBarcode more than once") || len(k.asked) != 0 {
						t.Errorf("%s: got %d %s", part, status, answer)
					}
				default:
					t.Errorf("%s: got %d %s", part, status, answer)
				}
			}
			if len(lent) == 2 && lent[0].hash == lent[1].hash && lent[0] != lent[1] {
				t.Errorf("the same hash for %+v and %+v", lent[0], lent[1])
			}
		})
	}
}

func TestRoutes_RefuseARepeatedProperty(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		checkOutPath, "/circulation/check-out-by-barcode-dry-run", "/circulation/check-in-by-barcode",
		"/circulation/renew-by-barcode",
		"/circulation/requests", "/circulation/end-patron-action-session", "/circulation/check-out-explanation",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			b := &backend{}
			status, header, body := b.send(t, "POST", path, `{"itemBarcode":"036","userBarcode":"ann","userBarcode":"ben"}`)
			if status != http.StatusBadRequest || header.Get("X-Fault-Code") != "MALFORMED" ||
				!strings.Contains(body, "the property userBarcode more than once") {
				t.Errorf("got %d %s, want 400 that names the property", status, body)
			}
			if b.asked.ItemBarcode != "" || b.wish != "" || b.returned.ItemBarcode != "" || b.renewal.ItemBarcode != "" {
				t.Error("it was acted on")
			}
		})
	}
}

func TestRoutes_ReadPropertiesByTheirExactName(t *testing.T) {
	t.Parallel()
	b := &backend{}
	status, _, body := b.send(t, "POST", checkOutPath,
		`{"itemBarcode":"036","ITEMBARCODE":"037","UserBarcode":"569","servicePointId":"s","more":{"a":[1]}}`)
	if status != http.StatusCreated || b.asked.ItemBarcode != "036" || b.asked.UserBarcode != "" {
		t.Errorf("got %d %s after asking for %+v, want item 036 and no patron", status, body, b.asked)
	}
}
