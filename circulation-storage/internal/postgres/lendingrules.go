package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// RulesStore keeps each tenant's circulation rules.
type RulesStore struct{ db *DB }

// NewRulesStore returns the rules of all tenants in db.
func NewRulesStore(db *DB) *RulesStore { return &RulesStore{db: db} }

const (
	rulesSQL    = `SELECT id::text, rules, metadata FROM {schema}.circulation_rules`
	setRulesSQL = `
UPDATE {schema}.circulation_rules
   SET rules = $1::text, metadata = jsonb_strip_nulls(
       coalesce(metadata, jsonb_build_object('createdDate', at, 'createdByUserId', nullif($2::text, ''))) ||
       jsonb_build_object('updatedDate', at, 'updatedByUserId', nullif($2::text, '')))
  FROM to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"') AS at`
	// missingPolicySQL returns the foreign key and the id of a policy that the rules name and that
	// has no record. The trigger of the UPDATE has linked the others, which are locked since.
	missingPolicySQL = `
SELECT links || '_fkey', id::text
  FROM ((SELECT 'circulation_rules_loan_policies' AS links, unnest({schema}.rule_policies(rules, 'l')) AS id FROM {schema}.circulation_rules
         EXCEPT SELECT 'circulation_rules_loan_policies', target_id FROM {schema}.circulation_rules_loan_policies)
         UNION ALL (SELECT 'circulation_rules_request_policies' AS links, unnest({schema}.rule_policies(rules, 'r')) AS id FROM {schema}.circulation_rules
         EXCEPT SELECT 'circulation_rules_request_policies', target_id FROM {schema}.circulation_rules_request_policies)
         UNION ALL (SELECT 'circulation_rules_notice_policies' AS links, unnest({schema}.rule_policies(rules, 'n')) AS id FROM {schema}.circulation_rules
         EXCEPT SELECT 'circulation_rules_notice_policies', target_id FROM {schema}.circulation_rules_notice_policies)) AS missing
 ORDER BY 1, 2 LIMIT 1`
)

// Rules implements records.RulesStore. Until the first SetRules the text is empty, and there is no
// metadata.
func (s *RulesStore) Rules(ctx context.Context) (schemas.CirculationRules, error) {
	var r schemas.CirculationRules
	err := s.db.readRow(ctx, s.db.conns.Ordinary, "reading the circulation rules", rulesSQL, nil, &r.ID, &r.RulesAsText, &r.Metadata)
	return r, err
}

// SetRules implements records.RulesStore. Circulation, which reads the rules, refuses what it cannot
// compile.
func (s *RulesStore) SetRules(ctx context.Context, text string, policiesExist bool) error {
	return s.db.runTx(ctx, s.db.conns.Ordinary, shortTx, "writing the circulation rules", func(tx pgx.Tx) error {
		if _, err := runStatement(ctx, tx, setRulesSQL, text, okapi.FromContext(ctx).UserID); err != nil || !policiesExist {
			return explainDangling(err)
		}
		var constraint, id string
		err := scanRow(ctx, tx, missingPolicySQL, nil, &constraint, &id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if t, ref, ok := records.FindReference(constraint); err == nil && ok {
			return ref.Dangling(t, id)
		}
		return err
	})
}
