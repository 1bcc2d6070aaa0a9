package records_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/jsonschema"
)

// sampleDir is where FOLIO's own sample records are: one folder for each
// endpoint. They may be missing.
func sampleDir(t *testing.T) string {
	t.Helper()
	dir, wanted := os.LookupEnv("FOLIO_SAMPLE_DIR")
	if !wanted {
		dir = "../../../../shared/folio-sample"
	}
	if _, err := os.Stat(dir); err != nil {
		if wanted {
			t.Fatal(err)
		}
		t.Skip("FOLIO's sample records are not here; FOLIO_SAMPLE_DIR says where they are")
	}
	return dir
}

func readSample(t *testing.T, dir, path string) [][]byte {
	t.Helper()
	var docs [][]byte
	err := filepath.WalkDir(filepath.Join(dir, path), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		doc, err := os.ReadFile(name)
		docs = append(docs, doc)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func TestType_AcceptsFOLIOsSampleRecords(t *testing.T) {
	t.Parallel()
	dir := sampleDir(t)
	stored := shelf{}
	for _, typ := range records.Types() {
		if _, err := os.Stat(filepath.Join(dir, typ.Path)); err != nil {
			continue // FOLIO has no sample of it
		}
		docs := readSample(t, dir, typ.Path)
		if len(docs) == 0 {
			t.Errorf("%s: no samples", typ.Path)
		}
		for _, doc := range docs {
			got, err := typ.Parse(doc, "")
			if err != nil {
				t.Errorf("%s: %s: %v", typ.Path, doc, err)
				continue
			}
			if err := typ.Complete(t.Context(), stored, records.Write{Record: got, Now: clock()}); err != nil {
				t.Errorf("%s: %s: %v", typ.Path, doc, err)
				continue
			}
			stored[typ.Table+"/"+got.ID()] = got
			comesBackWhole(t, doc, got)
		}
	}
	for _, doc := range readSample(t, dir, "circulation-rules-storage") {
		if err := jsonschema.Validate("circulation-rules", doc); err != nil {
			t.Error(err)
		}
	}
}

// comesBackWhole checks that nothing that was sent is lost, but what is null and
// what the server keeps.
func comesBackWhole(t *testing.T, sent []byte, got records.Record) {
	t.Helper()
	var want map[string]any
	dec := json.NewDecoder(strings.NewReader(string(sent)))
	dec.UseNumber()
	if err := dec.Decode(&want); err != nil {
		t.Fatal(err)
	}
	for key, value := range want {
		if status, ok := got[key].(map[string]any); ok && key == "status" {
			delete(status, "date")
		}
		if value != nil && !reflect.DeepEqual(got[key], value) {
			t.Errorf("%s: %s became %v, sent %v", got.ID(), key, got[key], value)
		}
	}
}
