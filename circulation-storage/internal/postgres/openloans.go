package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"checkoutlock/circulation-storage/internal/patronblock"
	"checkoutlock/schemas"
)

// countedByLimit is the condition by which limits count the loan of item i: FOLIO's item limit and
// its patron blocks leave out what is claimed returned.
const countedByLimit = `i.jsonb->'status'->>'name' <> 'Claimed returned'`

// What a limit w may ask of loan l and its item i. Only the database's clock decides what is overdue.
const (
	isOverdue       = `l.due_date <= clock_timestamp() - make_interval(mins => w.overdue)`
	loanTypeInForce = `coalesce(i.temporary_loan_type_id, i.permanent_loan_type_id)`
	isRecalled      = `coalesce(l.jsonb->'dueDateChangedByRecall' = 'true'::jsonb, false)`
	isLost          = `i.jsonb->'status'->>'name' IN ('Declared lost', 'Aged to lost')`
)

// countOpenLoansSQL counts the open loans of the patron $3 for each limit of the list in $4. It is a
// part of a statement after that of the fence, so its snapshot has what the lock's last holder
// committed.
//
// FOLIO's item limit asks neither for the loan's policy nor for the patron's group
// or location; a loan type counts when it is the one in force for the item.
const countOpenLoansSQL = `ARRAY(
  SELECT (SELECT count(*)
            FROM {schema}.loan l JOIN {schema}.item i ON i.id = l.item_id
           WHERE l.is_open AND l.user_id = $3::uuid
             AND ` + countedByLimit + `
             AND (w.material IS NULL OR i.material_type_id = w.material)
             AND (w.loan_type IS NULL OR ` + loanTypeInForce + ` = w.loan_type)
             AND (w.overdue IS NULL OR ` + isOverdue + `)
             AND (w.recalled IS NOT TRUE OR ` + isRecalled + `)
             AND (w.lost IS NOT TRUE OR ` + isLost + `))
    FROM (SELECT place, ("limit"->>'materialTypeId')::uuid AS material, ("limit"->>'loanTypeId')::uuid AS loan_type,
                 ("limit"->>'overdueMinutes')::int AS overdue, ("limit"->>'recalled')::boolean AS recalled,
                 ("limit"->>'lost')::boolean AS lost
            FROM jsonb_array_elements($4::jsonb) WITH ORDINALITY AS listed ("limit", place)) AS w
   ORDER BY w.place)`

// openLoansSQL lists the open loans of the row of patron, counted by what limits ask for. Loans that
// are not overdue are alike, so the list is short.
const openLoansSQL = `
       (SELECT json_agg(json_build_object('materialTypeId', c.material_type_id, 'loanTypeId', c.loan_type_id, 'overdueMinutes', c.overdue,
                 'recalled', c.recalled, 'lost', c.lost, 'count', c.count))
          FROM (SELECT i.material_type_id, ` + loanTypeInForce + ` AS loan_type_id,
                       greatest(floor(extract(epoch FROM clock_timestamp() - l.due_date) / 60), 0)::int AS overdue,
                       l.due_date < clock_timestamp() AND ` + isRecalled + ` AS recalled, ` + isLost + ` AS lost, count(*)
                  FROM {schema}.loan l JOIN {schema}.item i ON i.id = l.item_id
                 WHERE l.is_open AND l.user_id = (SELECT id FROM patron) AND ` + countedByLimit + `
                 GROUP BY 1, 2, 3, 4, 5) AS c)`

// groupLimitsSQL lists the limits of the patron's group with their conditions. Of several limits
// for one condition the lowest counts.
const groupLimitsSQL = `
       (SELECT json_agg(c.jsonb || jsonb_build_object('value', m.value) ORDER BY c.jsonb->>'name', c.id)
          FROM (SELECT condition_id, min((jsonb->>'value')::numeric) AS value
                  FROM {schema}.patron_block_limits WHERE patron_group_id = (SELECT patron_group FROM patron) GROUP BY 1) AS m
          JOIN {schema}.patron_block_conditions c ON c.id = m.condition_id
         WHERE m.value IS NOT NULL)`

// countedLoans has what openLoansSQL and groupLimitsSQL returned.
type countedLoans struct{ loans, limits json.RawMessage }

// complete adds the loans and the limits, and the blocks of limits that are reached, to those of
// the patron that are stored.
func (c countedLoans) complete(facts *schemas.CheckOutFacts) error {
	var limits []patronblock.GroupLimit
	if err := errors.Join(decodeList(c.loans, &facts.OpenLoans), decodeList(c.limits, &limits)); err != nil {
		return err
	}
	facts.BlockLimits = patronblock.ListBorrowingLimits(limits)
	var err error
	facts.AutomatedBlocks, err = patronblock.AddBlocks(facts.AutomatedBlocks, limits, facts.OpenLoans)
	return err
}

const (
	patronBlocksSQL = `
WITH patron AS (SELECT id, patron_group FROM {schema}.users WHERE id = $1::uuid)
SELECT (SELECT jsonb FROM {schema}.automated_patron_blocks WHERE user_id = $1::uuid), ` + openLoansSQL + `, ` + groupLimitsSQL
	setPatronBlocksSQL = `
INSERT INTO {schema}.automated_patron_blocks (user_id, jsonb) VALUES ($1::uuid, $2::jsonb)
ON CONFLICT ON CONSTRAINT automated_patron_blocks_pkey DO UPDATE SET jsonb = excluded.jsonb`
)

// PatronBlocks returns what was stored for a patron, and the blocks by limits of the patron's group.
// It is nil if there are none.
func (s *RecordStore) PatronBlocks(ctx context.Context, userID string) (json.RawMessage, error) {
	var facts schemas.CheckOutFacts
	var counted countedLoans
	err := s.db.readRow(ctx, s.db.conns.Ordinary, "reading automated patron blocks", patronBlocksSQL, []any{userID},
		&facts.AutomatedBlocks, &counted.loans, &counted.limits)
	if err == nil {
		err = counted.complete(&facts)
	}
	return facts.AutomatedBlocks, err
}

// SetPatronBlocks replaces what is stored for a patron by doc.
func (s *RecordStore) SetPatronBlocks(ctx context.Context, userID string, doc json.RawMessage) error {
	_, err := s.db.exec(ctx, s.db.conns.Ordinary, "writing automated patron blocks", setPatronBlocksSQL, userID, string(doc))
	return err
}
