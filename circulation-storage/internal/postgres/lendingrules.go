package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// RulesStore keeps each tenant's circulation rules.
type RulesStore struct{ db *DB }

// NewRulesStore returns the rules of all tenants in db.
func NewRulesStore(db *DB) *RulesStore { return &RulesStore{db: db} }

const (
	rulesSQL    = `SELECT id::text, rules FROM {schema}.circulation_rules`
	setRulesSQL = `UPDATE {schema}.circulation_rules SET rules = $1::text`
)

// Rules implements records.RulesStore. The text is empty until the first SetRules.
func (s *RulesStore) Rules(ctx context.Context) (schemas.CirculationRules, error) {
	var r schemas.CirculationRules
	err := s.db.readRow(ctx, s.db.pool, "reading the circulation rules", rulesSQL, nil, &r.ID, &r.RulesAsText)
	return r, err
}

// SetRules implements records.RulesStore. Circulation, which reads the rules, refuses what it cannot
// compile.
func (s *RulesStore) SetRules(ctx context.Context, text string) error {
	_, err := s.db.exec(ctx, s.db.pool, "writing the circulation rules", setRulesSQL, text)
	return err
}

// PatronBlockStore keeps each tenant's automated patron blocks.
type PatronBlockStore struct{ db *DB }

// NewPatronBlockStore returns the automated blocks of all tenants in db.
func NewPatronBlockStore(db *DB) *PatronBlockStore { return &PatronBlockStore{db: db} }

const (
	patronBlocksSQL    = `SELECT jsonb FROM {schema}.automated_patron_blocks WHERE user_id = $1::uuid`
	setPatronBlocksSQL = `
INSERT INTO {schema}.automated_patron_blocks (user_id, jsonb) VALUES ($1::uuid, $2::jsonb)
ON CONFLICT ON CONSTRAINT automated_patron_blocks_pkey DO UPDATE SET jsonb = excluded.jsonb`
)

// PatronBlocks returns what was stored for a patron. Fault: NotFound.
func (s *PatronBlockStore) PatronBlocks(ctx context.Context, userID string) (json.RawMessage, error) {
	var doc json.RawMessage
	err := s.db.readRow(ctx, s.db.pool, "reading automated patron blocks", patronBlocksSQL, []any{userID}, &doc)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "Not found: no automated blocks are stored for the patron")
	}
	return doc, err
}

// SetPatronBlocks replaces what is stored for a patron by doc.
func (s *PatronBlockStore) SetPatronBlocks(ctx context.Context, userID string, doc json.RawMessage) error {
	_, err := s.db.exec(ctx, s.db.pool, "writing automated patron blocks", setPatronBlocksSQL, userID, string(doc))
	return err
}
