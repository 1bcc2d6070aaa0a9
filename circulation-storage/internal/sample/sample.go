// Package sample holds a small demo library: reference records, which check-outs need, and
// patrons and items. All names are invented. The records are files in FOLIO's formats
// under data, with fixed ids for examples.
package sample

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

//go:embed data
var data embed.FS

// rulesFile is the text of the circulation rules.
const rulesFile = "data/rules.txt"

// Store is what the loader uses of the stores of records and rules.
type Store interface {
	records.RulesStore
	Create(ctx context.Context, t records.Type, r records.Record) (json.RawMessage, error)
	Get(ctx context.Context, t records.Type, id string) (json.RawMessage, error)
}

// Loader writes the library for the tenant in ctx. A repeated or concurrent load adds what
// is missing and changes nothing.
type Loader struct{ store Store }

// New returns a loader that writes through store, so that the rules of records hold.
func New(store Store) *Loader { return &Loader{store} }

// Load writes the reference records, the sample records or both, as LoadReference and LoadSample do.
func (l *Loader) Load(ctx context.Context, reference, sample bool) error {
	if reference {
		if err := l.LoadReference(ctx); err != nil {
			return fmt.Errorf("loading reference records: %w", err)
		}
	}
	if sample {
		if err := l.LoadSample(ctx); err != nil {
			return fmt.Errorf("loading sample records: %w", err)
		}
	}
	return nil
}

// LoadReference writes the reference records, then the circulation rules if the tenant has
// none. It skips records whose ids exist. Faults: Invalid for a tenant that has another
// record with one of the names; those of the stores. Records written before the fault
// stay.
func (l *Loader) LoadReference(ctx context.Context) error {
	if err := l.loadFiles(ctx, referenceFiles()); err != nil {
		return err
	}
	return l.loadRules(ctx)
}

// LoadSample writes patrons, instances, holdings and available items. It needs the
// reference records, and skips records whose ids exist. Faults: those of LoadReference,
// Invalid without reference records.
func (l *Loader) LoadSample(ctx context.Context) error {
	return l.loadFiles(ctx, sampleFiles())
}

// file is a list of records of one type.
type file struct {
	name       string
	recordType records.Type
}

// referenceFiles lists each file after those that it refers to.
func referenceFiles() []file {
	return []file{
		{"groups.json", records.Usergroup},
		{"address-types.json", records.AddressType},
		{"material-types.json", records.MaterialType},
		{"loan-types.json", records.LoanType},
		{"service-points.json", records.ServicePoint},
		{"institutions.json", records.Institution},
		{"campuses.json", records.Campus},
		{"libraries.json", records.Library},
		{"locations.json", records.Location},
		{"fixed-due-date-schedules.json", records.FixedDueDateSchedule},
		{"loan-policies.json", records.LoanPolicy},
		{"request-policies.json", records.RequestPolicy},
		{"patron-notice-policies.json", records.PatronNoticePolicy},
		{"overdue-fine-policies.json", records.OverdueFinePolicy},
		{"lost-item-fee-policies.json", records.LostItemFeePolicy},
		{"circulation-settings.json", records.CirculationSetting},
		{"staff-slips.json", records.StaffSlip},
		{"cancellation-reasons.json", records.CancellationReason},
		{"patron-block-conditions.json", records.PatronBlockCondition},
	}
}

func sampleFiles() []file {
	return []file{
		{"users.json", records.User},
		{"instances.json", records.Instance},
		{"holdings.json", records.Holdings},
		{"items.json", records.Item},
	}
}

// readRecords returns the file's records as JSON.
func (f file) readRecords() ([]json.RawMessage, error) {
	raw, err := data.ReadFile("data/" + f.name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.name, err)
	}
	var docs []json.RawMessage
	if err := json.Unmarshal(raw, &docs); err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.name, err)
	}
	return docs, nil
}

// Examples returns the first record of each type by the name of its JSON Schema.
func Examples() map[string]json.RawMessage {
	examples := map[string]json.RawMessage{}
	for _, f := range slices.Concat(referenceFiles(), sampleFiles()) {
		if docs, err := f.readRecords(); err == nil {
			examples[f.recordType.Schema] = docs[0]
		}
	}
	return examples
}

func (l *Loader) loadFiles(ctx context.Context, files []file) error {
	for _, f := range files {
		docs, err := f.readRecords()
		if err != nil {
			return err
		}
		for i, doc := range docs {
			if err := l.addRecord(ctx, f.recordType, doc); err != nil {
				return fmt.Errorf("record %d of %s: %w", i+1, f.name, err)
			}
		}
	}
	return nil
}

// addRecord creates the record unless its id exists.
func (l *Loader) addRecord(ctx context.Context, t records.Type, doc json.RawMessage) error {
	r, err := t.Parse(doc, "")
	if err != nil {
		return err
	}
	if _, err := l.store.Get(ctx, t, r.ID()); !fault.Is(err, fault.NotFound) {
		return err
	}
	if _, err := l.store.Create(ctx, t, r); err != nil {
		// Another instance may have created it meanwhile.
		if _, gone := l.store.Get(ctx, t, r.ID()); gone != nil {
			return err
		}
	}
	return nil
}

func (l *Loader) loadRules(ctx context.Context) error {
	stored, err := l.store.Rules(ctx)
	if err != nil || strings.TrimSpace(stored.RulesAsText) != "" {
		return err
	}
	text, err := data.ReadFile(rulesFile)
	if err != nil {
		return fmt.Errorf("reading %s: %w", rulesFile, err)
	}
	return l.store.SetRules(ctx, string(text), false)
}
