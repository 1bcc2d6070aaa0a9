package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// inFolioForm goes on after to_char and a time, for that time in UTC as FOLIO's records have it.
const inFolioForm = ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')`

const folioNow = `to_char(clock_timestamp()` + inFolioForm

const (
	rulesSQL    = `SELECT id::text, rules, metadata FROM {schema}.circulation_rules`
	setRulesSQL = `
UPDATE {schema}.circulation_rules
   SET rules = $1::text, metadata = jsonb_strip_nulls(
       coalesce(metadata, jsonb_build_object('createdDate', at, 'createdByUserId', nullif($2::text, ''))) ||
       jsonb_build_object('updatedDate', at, 'updatedByUserId', nullif($2::text, '')))
  FROM ` + folioNow + ` AS at`
)

// missingPolicySQL returns the foreign key and the id of a policy that the rules name and that has no
// record. The trigger of the UPDATE has linked the others, which are locked since.
var missingPolicySQL = `
SELECT links || '_fkey', id::text
  FROM (` + strings.Join([]string{
	selectUnlinked("loan", "l"), selectUnlinked("request", "r"), selectUnlinked("notice", "n"),
	selectUnlinked("overdue_fine", "o"), selectUnlinked("lost_item", "i"),
}, " UNION ALL ") + `) AS missing
 ORDER BY 1, 2 LIMIT 1`

// selectUnlinked selects the policies of a kind that the rules name behind its letter, less the linked
// ones.
func selectUnlinked(kind, letter string) string {
	return strings.NewReplacer("LINKS", "circulation_rules_"+kind+"_policies", "LETTER", letter).Replace(`
(SELECT 'LINKS' AS links, unnest({schema}.rule_policies(rules, 'LETTER')) AS id FROM {schema}.circulation_rules
 EXCEPT SELECT 'LINKS', target_id FROM {schema}.LINKS)`)
}

// Rules implements records.RulesStore. Until the first SetRules the text is empty, and there is no
// metadata.
func (s *RecordStore) Rules(ctx context.Context) (schemas.CirculationRules, error) {
	var r schemas.CirculationRules
	err := s.db.readRow(ctx, s.db.conns.Ordinary, "reading the circulation rules", rulesSQL, nil, &r.ID, &r.RulesAsText, &r.Metadata)
	return r, err
}

// SetRules implements records.RulesStore. Circulation, which reads the rules, refuses what it cannot
// compile.
func (s *RecordStore) SetRules(ctx context.Context, text string, policiesExist bool) error {
	return s.db.runTx(ctx, s.db.conns.Ordinary, shortTx, "writing the circulation rules", func(tx pgx.Tx) error {
		if _, err := runStatement(ctx, tx, setRulesSQL, text, okapi.FromContext(ctx).UserID); err != nil || !policiesExist {
			return explainDangling(err)
		}
		var constraint, id string
		err := scanRow(ctx, tx, missingPolicySQL, nil, &constraint, &id)
		if t, ref, ok := records.FindReference(constraint); err == nil && ok {
			return ref.Dangling(t, id)
		}
		return explainNoRow(err, nil)
	})
}
