package postgres

import (
	"context"

	"checkoutlock/schemas"
)

// RulesStore keeps each tenant's circulation rules.
type RulesStore struct{ db *DB }

// NewRulesStore returns the rules of all tenants in db.
func NewRulesStore(db *DB) *RulesStore { return &RulesStore{db: db} }

const rulesSQL = `SELECT id::text, rules FROM {schema}.circulation_rules`

// Rules returns the tenant's rules; the text is empty until somebody writes one.
func (s *RulesStore) Rules(ctx context.Context) (schemas.CirculationRules, error) {
	statement, err := query(ctx, rulesSQL)
	if err != nil {
		return schemas.CirculationRules{}, err
	}
	var r schemas.CirculationRules
	err = s.db.read(ctx, func() error { return s.db.pool.QueryRow(ctx, statement).Scan(&r.ID, &r.RulesAsText) })
	return r, toFault("reading the circulation rules", err)
}

const setRulesSQL = `UPDATE {schema}.circulation_rules SET rules = $1::text`

// SetRules replaces the text of the tenant's rules. It is not compiled here:
// circulation, which reads it, refuses what it cannot compile.
func (s *RulesStore) SetRules(ctx context.Context, text string) error {
	statement, err := query(ctx, setRulesSQL)
	if err != nil {
		return err
	}
	_, err = s.db.pool.Exec(ctx, statement, text)
	return toFault("writing the circulation rules", err)
}
