// Package sample holds a small library that comes with the service: reference
// records, without which nothing can be lent, and patrons and items to try it
// with. All names are invented. The records are files in FOLIO's shapes, under
// data, with fixed ids, so that they can be named in examples.
package sample

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

//go:embed data
var data embed.FS

// rulesFile is the text of the circulation rules.
const rulesFile = "data/rules.txt"

// Store is what the loader needs of records.Store.
type Store interface {
	Create(ctx context.Context, t records.Type, r records.Record) (json.RawMessage, error)
	Get(ctx context.Context, t records.Type, id string) (json.RawMessage, error)
}

// RulesStore keeps the circulation rules of the tenant in ctx.
type RulesStore interface {
	Rules(ctx context.Context) (schemas.CirculationRules, error)
	SetRules(ctx context.Context, text string) error
}

// Loader writes the library for the tenant in ctx. Loading again, or from
// several instances at once, adds what is missing and changes nothing.
type Loader struct {
	store Store
	rules RulesStore
}

// New returns a loader that writes through store and rules, so that records obey
// what all records obey.
func New(store Store, rules RulesStore) *Loader {
	return &Loader{store: store, rules: rules}
}

// LoadReference writes patron groups, material types, loan types, service points,
// locations and what they belong to, schedules, policies and circulation settings,
// then the circulation rules if the tenant has none.
// A record whose id exists stays as it is. Faults: Invalid for a tenant that has
// another record with one of the names, those of the stores. What was written
// before the fault stays.
func (l *Loader) LoadReference(ctx context.Context) error {
	if err := l.load(ctx, referenceFiles()); err != nil {
		return err
	}
	return l.loadRules(ctx)
}

// LoadSample writes patrons, instances, holdings and items, nothing of it on
// loan. It needs the reference records. A record whose id exists stays as it is.
// Faults: those of LoadReference, Invalid without reference records.
func (l *Loader) LoadSample(ctx context.Context) error {
	return l.load(ctx, sampleFiles())
}

// file is a list of records of one type.
type file struct {
	name string
	of   records.Type
}

// referenceFiles and sampleFiles come after those that they refer to.
func referenceFiles() []file {
	return []file{
		{"groups.json", records.Usergroup()},
		{"material-types.json", records.MaterialType()},
		{"loan-types.json", records.LoanType()},
		{"service-points.json", records.ServicePoint()},
		{"institutions.json", records.Institution()},
		{"campuses.json", records.Campus()},
		{"libraries.json", records.Library()},
		{"locations.json", records.Location()},
		{"fixed-due-date-schedules.json", records.FixedDueDateSchedule()},
		{"loan-policies.json", records.LoanPolicy()},
		{"request-policies.json", records.RequestPolicy()},
		{"circulation-settings.json", records.CirculationSetting()},
	}
}

func sampleFiles() []file {
	return []file{
		{"users.json", records.User()},
		{"instances.json", records.Instance()},
		{"holdings.json", records.Holdings()},
		{"items.json", records.Item()},
	}
}

// docs reads the file's records as they are written in it.
func (f file) docs() ([]json.RawMessage, error) {
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

func (l *Loader) load(ctx context.Context, files []file) error {
	for _, f := range files {
		docs, err := f.docs()
		if err != nil {
			return err
		}
		for i, doc := range docs {
			if err := l.add(ctx, f.of, doc); err != nil {
				return fmt.Errorf("record %d of %s: %w", i+1, f.name, err)
			}
		}
	}
	return nil
}

// add creates the record unless its id exists.
func (l *Loader) add(ctx context.Context, t records.Type, doc json.RawMessage) error {
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
	stored, err := l.rules.Rules(ctx)
	if err != nil || strings.TrimSpace(stored.RulesAsText) != "" {
		return err
	}
	text, err := data.ReadFile(rulesFile)
	if err != nil {
		return fmt.Errorf("reading %s: %w", rulesFile, err)
	}
	return l.rules.SetRules(ctx, string(text))
}
