package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
)

// FOLIO's own records are not part of the project; FOLIO_SAMPLE_DIR says where
// they are.
func TestRecordRoutes_KeepFoliosSampleRecords(t *testing.T) {
	t.Parallel()
	dir, wanted := os.LookupEnv("FOLIO_SAMPLE_DIR")
	if !wanted {
		dir = "../../../../shared/folio-sample"
	}
	if _, err := os.Stat(dir); err != nil {
		if wanted {
			t.Fatal(err)
		}
		t.Skip("FOLIO's sample records are not here")
	}
	db, id := pgtest.New(t)
	a := recordAPI{newAPI(t, slices.Concat(
		httpapi.RecordRoutes(postgres.NewRecordStore(db, func() {})),
		httpapi.RulesRoutes(postgres.NewRecordStore(db, func() {})),
	)), id}
	loaded := 0
	for _, typ := range records.Types() {
		docs := folioSamples(t, dir, typ.Path)
		loaded += len(docs)
		for _, doc := range docs {
			w := a.must(t, http.MethodPost, typ.Path, doc, http.StatusCreated)
			wantWhole(t, doc, a.must(t, http.MethodGet, w.Header().Get("Location"), "", http.StatusOK).Body.String())
		}
		if len(docs) == 0 {
			continue // FOLIO has no sample of it
		}
		page := parseJSON(t, a.must(t, http.MethodGet, typ.Path+"?limit=0", "", http.StatusOK).Body.String())
		if got := page["totalRecords"]; got != json.Number(fmt.Sprint(len(docs))) {
			t.Errorf("%s: totalRecords is %v, want %d", typ.Path, got, len(docs))
		}
	}
	const rules = "/circulation-rules-storage"
	for _, doc := range folioSamples(t, dir, rules) {
		a.must(t, http.MethodPut, rules, doc, http.StatusNoContent)
		wantWhole(t, doc, a.must(t, http.MethodGet, rules, "", http.StatusOK).Body.String())
		loaded++
	}
	if all := len(folioSamples(t, dir, "/")); loaded != all || loaded == 0 {
		t.Errorf("loaded %d records, want all %d", loaded, all)
	}
}

// folioSamples returns the records in a folder and those below it.
func folioSamples(t *testing.T, dir, folder string) []string {
	t.Helper()
	var docs []string
	err := filepath.WalkDir(filepath.Join(dir, folder), func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || entry.IsDir():
			return err
		}
		doc, err := os.ReadFile(name)
		docs = append(docs, string(doc))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}
