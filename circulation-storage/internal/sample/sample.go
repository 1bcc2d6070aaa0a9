// Package sample holds a small demo library: reference records, which check-outs need, and
// patrons and items. All names are invented. The records are files in FOLIO's formats
// under data, with fixed ids for examples.
package sample

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

//go:embed data
var data embed.FS

const (
	// referenceFolder and sampleFolder have a file for each type of which the library has records.
	referenceFolder = "data/reference/"
	sampleFolder    = "data/sample/"
	// rulesFile is the text of the circulation rules.
	rulesFile = "data/rules.txt"
)

// Store is what Load uses of the stores of records and rules.
type Store interface {
	records.RulesStore
	Create(ctx context.Context, t records.Type, r records.Record) (json.RawMessage, error)
	Get(ctx context.Context, t records.Type, id string) (json.RawMessage, error)
}

// Load writes the reference records, and the circulation rules if the tenant in ctx has none; or the sample
// records, which need the reference records: patrons, instances, holdings and available items; or both.
// A repeated or concurrent load adds what is missing, by the ids of records, and changes nothing. It writes
// through store, so that the rules of records hold. Faults: Invalid for a tenant that has another record
// with one of the names, or lacks reference records; those of the stores. Records written before the fault
// stay.
func Load(ctx context.Context, store Store, reference, sample bool) error {
	if reference {
		err := loadFolder(ctx, store, referenceFolder)
		if err == nil {
			err = loadRules(ctx, store)
		}
		if err != nil {
			return fmt.Errorf("loading reference records: %w", err)
		}
	}
	if sample {
		if err := loadFolder(ctx, store, sampleFolder); err != nil {
			return fmt.Errorf("loading sample records: %w", err)
		}
	}
	return nil
}

// fileOf returns the name of a type's file in each folder: the last step of the type's path.
func fileOf(t records.Type) string { return path.Base(t.Path) + ".json" }

// readRecords returns the records of a type in a folder as JSON, none if the folder has no file of it.
func readRecords(folder string, t records.Type) ([]json.RawMessage, error) {
	raw, err := data.ReadFile(folder + fileOf(t))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var docs []json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &docs)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", fileOf(t), err)
	}
	return docs, nil
}

// Examples returns the first record of each type by the name of its JSON Schema.
func Examples() map[string]json.RawMessage {
	examples := map[string]json.RawMessage{}
	for _, t := range records.Types() {
		for _, folder := range []string{referenceFolder, sampleFolder} {
			if docs, err := readRecords(folder, t); err == nil && docs != nil {
				examples[t.Schema] = docs[0]
			}
		}
	}
	return examples
}

// loadFolder loads the records of each type after those that they refer to.
func loadFolder(ctx context.Context, store Store, folder string) error {
	for _, t := range records.Types() {
		docs, err := readRecords(folder, t)
		if err != nil {
			return err
		}
		for i, doc := range docs {
			if err := addRecord(ctx, store, t, doc); err != nil {
				return fmt.Errorf("record %d of %s: %w", i+1, fileOf(t), err)
			}
		}
	}
	return nil
}

// addRecord creates the record unless its id exists.
func addRecord(ctx context.Context, store Store, t records.Type, doc json.RawMessage) error {
	r, err := t.Parse(doc, "")
	if err != nil {
		return err
	}
	if _, err := store.Get(ctx, t, r.ID()); !fault.Is(err, fault.NotFound) {
		return err
	}
	if _, err := store.Create(ctx, t, r); err != nil {
		// Another instance may have created it meanwhile.
		if _, gone := store.Get(ctx, t, r.ID()); gone != nil {
			return err
		}
	}
	return nil
}

func loadRules(ctx context.Context, store Store) error {
	stored, err := store.Rules(ctx)
	if err != nil || strings.TrimSpace(stored.RulesAsText) != "" {
		return err
	}
	text, err := data.ReadFile(rulesFile)
	if err != nil {
		return fmt.Errorf("reading %s: %w", rulesFile, err)
	}
	return store.SetRules(ctx, string(text), false)
}
