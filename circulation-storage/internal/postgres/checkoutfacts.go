package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"checkoutlock/schemas"
)

// checkOutFactsSQL reads all facts from one snapshot. Each part is a look-up by a unique
// index, or by the index of the user, item or instance, so its time does not grow with
// the library. $1 is the user's barcode, $2 the proxy's, $3 the item's, $4 the item's id,
// $5 says whether requests for titles count, and $7 is the user's id.
//
// It has no row locks: the commit judges again what can change until then.
const checkOutFactsSQL = `
WITH patron AS (SELECT * FROM (
                  SELECT id, jsonb, patron_group FROM {schema}.users WHERE id = $7::uuid
                  UNION ALL
                  SELECT id, jsonb, patron_group FROM {schema}.users WHERE $7::uuid IS NULL AND lower(jsonb->>'barcode') = lower($1::text)
                ) AS named LIMIT 1),
     proxy  AS (SELECT id, jsonb FROM {schema}.users WHERE lower(jsonb->>'barcode') = lower($2::text) LIMIT 1),
     item   AS (SELECT * FROM (
                  SELECT id, jsonb, holdings_record_id FROM {schema}.item WHERE id = $4::uuid
                  UNION ALL
                  SELECT id, jsonb, holdings_record_id FROM {schema}.item WHERE $4::uuid IS NULL AND lower(jsonb->>'barcode') = lower($3::text)
                ) AS named LIMIT 1),
     shelf  AS (SELECT h.jsonb, h.instance_id FROM {schema}.holdings_record h JOIN item ON h.id = item.holdings_record_id),
     queue  AS (SELECT r.jsonb, r.position, r.id FROM {schema}.request r
                 WHERE ` + isWaiting + ` AND r.item_id = (SELECT id FROM item) AND NOT ($5::boolean AND EXISTS (SELECT FROM shelf WHERE instance_id IS NOT NULL))
                UNION ALL
                SELECT r.jsonb, r.position, r.id FROM {schema}.request r
                 WHERE r.is_open AND $5::boolean AND r.instance_id = (SELECT instance_id FROM shelf))
SELECT (SELECT jsonb FROM patron),
       (SELECT jsonb FROM proxy),
       (SELECT json_agg(p.jsonb) FROM {schema}.proxyfor p WHERE p.user_id = (SELECT id FROM patron) AND p.proxy_user_id = (SELECT id FROM proxy)),
       (SELECT json_agg(b.jsonb) FROM {schema}.manualblocks b WHERE b.user_id = (SELECT id FROM patron)),
       (SELECT b.jsonb FROM {schema}.automated_patron_blocks b WHERE b.user_id = (SELECT id FROM patron)),
       (SELECT jsonb FROM item),
       (SELECT jsonb FROM shelf),
       (SELECT n.jsonb FROM {schema}.instance n WHERE n.id = (SELECT instance_id FROM shelf)),
       EXISTS (SELECT FROM {schema}.loan l WHERE l.is_open AND l.item_id = (SELECT id FROM item)),
       (SELECT json_agg(o.jsonb ORDER BY o.position, o.id) FROM (SELECT * FROM queue ORDER BY position, id LIMIT $6::bigint) AS o),
       ` + openLoansSQL + `,
       ` + groupLimitsSQL

// checkInFactsSQL reads in the same snapshot what only a check-in needs. $8 is its service point. The
// requester is that of the first request that the item can fill, for print only.
const checkInFactsSQL = checkOutFactsSQL + `,
       (SELECT json_build_object(
          'loanType',    (SELECT t.jsonb FROM {schema}.loan_type t WHERE t.id = place.loan_type_id),
          'library',     (SELECT u.jsonb FROM {schema}.loclibrary u WHERE u.id = place.library_id),
          'campus',      (SELECT u.jsonb FROM {schema}.loccampus u WHERE u.id = place.campus_id),
          'institution', (SELECT u.jsonb FROM {schema}.locinstitution u WHERE u.id = place.institution_id),
          'requester',   requester.jsonb,
          'group',       (SELECT g.jsonb FROM {schema}.usergroup g WHERE g.id = (requester.jsonb->>'patronGroup')::uuid),
          'servicePoints', (SELECT json_agg(p.jsonb) FROM {schema}.service_point p WHERE p.id = ANY (
             ARRAY[$8::uuid, place.service_point_id] || ARRAY(SELECT (jsonb->>'pickupServicePointId')::uuid FROM queue))))
          FROM (SELECT coalesce(i.jsonb->>'temporaryLoanTypeId', i.jsonb->>'permanentLoanTypeId')::uuid AS loan_type_id,
                       (l.jsonb->>'libraryId')::uuid AS library_id, (l.jsonb->>'campusId')::uuid AS campus_id,
                       (l.jsonb->>'institutionId')::uuid AS institution_id, (l.jsonb->>'primaryServicePoint')::uuid AS service_point_id
                  FROM item i LEFT JOIN {schema}.location l ON l.id = (i.jsonb->>'effectiveLocationId')::uuid) AS place
          LEFT JOIN {schema}.users requester ON requester.id = (
                SELECT (q.jsonb->>'requesterId')::uuid FROM queue q
                 WHERE coalesce((q.jsonb->>'itemId')::uuid = (SELECT id FROM item), true)
                    OR q.jsonb->>'requestType' = 'Recall' AND q.jsonb->>'status' = 'Open - Not yet filled'
                 ORDER BY q.position, q.id LIMIT 1))`

// ReadCheckOutFacts implements commit.Store.
func (s *CommitStore) ReadCheckOutFacts(ctx context.Context, subjects schemas.CheckOutSubjects) (schemas.CheckOutFacts, error) {
	var facts schemas.CheckOutFacts
	var relations, blocks, requests json.RawMessage
	var counted countedLoans
	statement := checkOutFactsSQL
	args := []any{
		nullIfEmpty(subjects.UserBarcode), nullIfEmpty(subjects.ProxyUserBarcode), nullIfEmpty(subjects.ItemBarcode),
		nullIfEmpty(subjects.ItemID), subjects.TitleLevel, schemas.MaxQueue, nullIfEmpty(subjects.UserID),
	}
	dest := []any{
		&facts.User, &facts.ProxyUser, &relations, &blocks, &facts.AutomatedBlocks,
		&facts.Item, &facts.Holdings, &facts.Instance, &facts.OnLoan, &requests, &counted.loans, &counted.limits,
	}
	if subjects.ServicePointID != "" {
		statement, args, dest = checkInFactsSQL, append(args, subjects.ServicePointID), append(dest, &facts.Slip)
	}
	err := s.db.readRow(ctx, s.db.pool, "reading the facts of a check-out", statement, args, dest...)
	if err != nil {
		return schemas.CheckOutFacts{}, err
	}
	err = errors.Join(
		decodeList(relations, &facts.ProxyRelations), decodeList(blocks, &facts.ManualBlocks),
		decodeList(requests, &facts.Requests), counted.complete(&facts),
	)
	if err != nil {
		return schemas.CheckOutFacts{}, fmt.Errorf("reading the facts of a check-out: %w", err)
	}
	return facts, nil
}

// nullIfEmpty returns SQL's NULL, which nothing is equal to, for an empty text.
func nullIfEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// decodeList reads a JSON list; SQL's NULL is an empty one.
func decodeList[T any](list json.RawMessage, into *[]T) error {
	if list == nil {
		return nil
	}
	return json.Unmarshal(list, into)
}
