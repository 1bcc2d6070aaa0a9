package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	fast "github.com/segmentio/encoding/json"

	"checkoutlock/database"
	"checkoutlock/schemas"
)

// The statements read all facts from one snapshot. Each part is a look-up by a unique index, or by the
// index of the user, item or instance, so its time does not grow with the library. $1 is the user's
// barcode, $2 the item's, and $3 the length of the queue. They have no row locks: the commit judges
// again what can change until then.
const (
	patronByBarcode = `SELECT id, jsonb, patron_group FROM {schema}.users WHERE lower(jsonb->>'barcode') = lower($1::text)`
	itemByBarcode   = `SELECT id, jsonb, holdings_record_id FROM {schema}.item WHERE lower(jsonb->>'barcode') = lower($2::text)`
	shelfOfItem     = `SELECT h.jsonb, h.instance_id FROM {schema}.holdings_record h JOIN item ON h.id = item.holdings_record_id`
	queueOfItem     = `SELECT r.jsonb, r.position, r.id FROM {schema}.request r WHERE ` + isWaiting + ` AND r.item_id = (SELECT id FROM item)`

	proxyFacts = `
       (SELECT jsonb FROM proxy),
       (SELECT json_agg(p.jsonb) FROM {schema}.proxyfor p WHERE p.user_id = (SELECT id FROM patron) AND p.proxy_user_id = (SELECT id FROM proxy))`
	otherFacts = `
       (SELECT jsonb FROM patron),
       (SELECT json_agg(b.jsonb) FROM {schema}.manualblocks b WHERE b.user_id = (SELECT id FROM patron)),
       (SELECT b.jsonb FROM {schema}.automated_patron_blocks b WHERE b.user_id = (SELECT id FROM patron)),
       (SELECT jsonb FROM item),
       (SELECT jsonb FROM shelf),
       (SELECT n.jsonb FROM {schema}.instance n WHERE n.id = (SELECT instance_id FROM shelf)),
       (SELECT coalesce(l.user_id = (SELECT id FROM patron), false) FROM {schema}.loan l WHERE l.is_open AND l.item_id = (SELECT id FROM item)),
       (SELECT json_agg(o.jsonb ORDER BY o.position, o.id) FROM (SELECT * FROM queue ORDER BY position, id LIMIT $3::bigint) AS o),
       ` + openLoansSQL + `,
       ` + groupLimitsSQL + `,
       (SELECT version::text FROM {schema}.reference_version WHERE only_row),
       statement_timestamp()`
)

// barcodeFactsSQL is for most check-outs: it has no proxy, no ids, and no requests for titles.
const barcodeFactsSQL = `
WITH patron AS (` + patronByBarcode + ` LIMIT 1),
     item   AS (` + itemByBarcode + ` LIMIT 1),
     shelf  AS (` + shelfOfItem + `),
     queue  AS (` + queueOfItem + `)
SELECT NULL::jsonb, NULL::json,` + otherFacts

// checkOutFactsSQL is for all others. $4 is the proxy's barcode, $5 the item's id, $6 says whether
// requests for titles count, and $7 is the user's id.
const checkOutFactsSQL = `
WITH patron AS (SELECT * FROM (
                  SELECT id, jsonb, patron_group FROM {schema}.users WHERE id = $7::uuid
                  UNION ALL
                  ` + patronByBarcode + ` AND $7::uuid IS NULL
                ) AS named LIMIT 1),
     proxy  AS (SELECT id, jsonb FROM {schema}.users WHERE lower(jsonb->>'barcode') = lower($4::text) LIMIT 1),
     item   AS (SELECT * FROM (
                  SELECT id, jsonb, holdings_record_id FROM {schema}.item WHERE id = $5::uuid
                  UNION ALL
                  ` + itemByBarcode + ` AND $5::uuid IS NULL
                ) AS named LIMIT 1),
     shelf  AS (` + shelfOfItem + `),
     queue  AS (` + queueOfItem + ` AND (NOT $6::boolean OR ` + isOfItem + `)
                UNION ALL
                SELECT r.jsonb, r.position, r.id FROM {schema}.request r
                 WHERE r.is_open AND $6::boolean AND r.instance_id = (SELECT instance_id FROM shelf)
                   AND NOT (` + isOfItem + ` AND r.item_id IS NOT DISTINCT FROM (SELECT id FROM item)))
SELECT ` + proxyFacts + `,` + otherFacts

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
                 WHERE (q.jsonb->>'itemId')::uuid = (SELECT id FROM item) AND ($6::boolean OR q.jsonb->>'requestLevel' IS DISTINCT FROM 'Title')
                    OR $6::boolean AND q.jsonb->>'requestLevel' = 'Title' AND (q.jsonb->>'itemId' IS NULL
                       OR q.jsonb->>'requestType' = 'Recall' AND q.jsonb->>'status' = 'Open - Not yet filled')
                 ORDER BY q.position, q.id LIMIT 1))`

// severalFactsSQL and severalBarcodeFactsSQL are the statements for each of several check-outs. So
// PostgreSQL plans them once for all of them. Where PgBouncer lets it keep no plan, that takes several
// times as long as to run it.
var (
	severalFactsSQL = repeatFacts(checkOutFactsSQL, "$1::text[], $2::text[], $4::text[], $5::uuid[], $6::boolean[], $7::uuid[]",
		"user_barcode, item_barcode, proxy_barcode, item_id, titles, user_id")
	severalBarcodeFactsSQL = repeatFacts(barcodeFactsSQL, "$1::text[], $2::text[]", "user_barcode, item_barcode")
)

func repeatFacts(statement, lists, names string) string {
	return `
SELECT f.* FROM unnest(` + lists + `) WITH ORDINALITY AS q (` + names + `, n)
 CROSS JOIN LATERAL (` + strings.NewReplacer(
		"$1::text", "q.user_barcode", "$2::text", "q.item_barcode", "$4::text", "q.proxy_barcode",
		"$5::uuid", "q.item_id", "$6::boolean", "q.titles", "$7::uuid", "q.user_id",
	).Replace(statement) + `) AS f ORDER BY q.n`
}

// factsRow is what a statement reads.
type factsRow struct {
	schemas.CheckOutFacts
	relations, blocks, requests json.RawMessage
	counted                     countedLoans
	// onLoan says whether the open loan of the item is the patron's; nil without an open loan.
	onLoan *bool
}

func (f *factsRow) fields() []any {
	return []any{
		&f.ProxyUser, &f.relations, &f.User, &f.blocks, &f.AutomatedBlocks, &f.Item, &f.Holdings, &f.Instance, &f.onLoan,
		&f.requests, &f.counted.loans, &f.counted.limits, &f.ReferenceVersion, &f.ReadAt,
	}
}

// complete decodes what was read.
func (f *factsRow) complete() (schemas.CheckOutFacts, error) {
	err := errors.Join(
		decodeList(f.relations, &f.ProxyRelations), decodeList(f.blocks, &f.ManualBlocks),
		decodeList(f.requests, &f.Requests), f.counted.complete(&f.CheckOutFacts),
	)
	if err != nil {
		return schemas.CheckOutFacts{}, fmt.Errorf("reading the facts of a check-out: %w", err)
	}
	f.OnLoan, f.OnLoanToUser = f.onLoan != nil, f.onLoan != nil && *f.onLoan
	return f.CheckOutFacts, nil
}

// factsStatement returns the statement for the subjects, and its parameters. Those of check-outs come
// before the service point of check-ins.
func factsStatement(s schemas.CheckOutSubjects) (string, []any) {
	args := []any{
		nullIfEmpty(s.UserBarcode), nullIfEmpty(s.ItemBarcode), schemas.MaxQueue,
		nullIfEmpty(s.ProxyUserBarcode), nullIfEmpty(s.ItemID), s.TitleLevel, nullIfEmpty(s.UserID),
	}
	if namesBarcodesOnly(s) {
		return barcodeFactsSQL, args[:3]
	}
	return checkOutFactsSQL, args
}

func namesBarcodesOnly(s schemas.CheckOutSubjects) bool {
	return s == schemas.CheckOutSubjects{UserBarcode: s.UserBarcode, ItemBarcode: s.ItemBarcode}
}

// ReadCheckOutFacts implements commit.Store.
func (s *CommitStore) ReadCheckOutFacts(ctx context.Context, subjects schemas.CheckOutSubjects) (schemas.CheckOutFacts, error) {
	const op = "reading the facts of a check-out"
	var facts factsRow
	var err error
	if subjects.ServicePointID != "" {
		_, args := factsStatement(subjects)
		args = append(args, subjects.ServicePointID)
		err = s.db.lookUpRow(ctx, s.db.conns.Urgent, op, checkInFactsSQL, args, append(facts.fields(), &facts.Slip)...)
	} else if facts, err = runInGroup(ctx, s.facts, subjects); errors.Is(err, database.ErrRunAlone) {
		statement, args := factsStatement(subjects)
		err = s.db.lookUpRow(ctx, s.db.conns.Urgent, op, statement, args, facts.fields()...)
	}
	if err != nil {
		return schemas.CheckOutFacts{}, toFault(op, err)
	}
	return facts.complete()
}

// sendFacts reads the facts of all members in one statement.
func sendFacts(ctx context.Context, conn *pgxpool.Conn, group []*member[schemas.CheckOutSubjects, factsRow]) error {
	var err error
	if len(group) == 1 {
		statement, args := factsStatement(group[0].Asked)
		err = lookUp(ctx, conn, statement, args, group[0].Answer.fields()...)
	} else {
		err = readSeveralFacts(ctx, conn, group)
	}
	if err != nil {
		return letReadAlone(ctx, group, err)
	}
	for _, m := range group {
		m.Err = nil
	}
	return nil
}

func readSeveralFacts(ctx context.Context, conn *pgxpool.Conn, group []*member[schemas.CheckOutSubjects, factsRow]) error {
	var users, proxies, items, itemIDs, userIDs []*string
	var titles []bool
	for _, m := range group {
		users, proxies = append(users, nullIfEmpty(m.Asked.UserBarcode)), append(proxies, nullIfEmpty(m.Asked.ProxyUserBarcode))
		items, itemIDs = append(items, nullIfEmpty(m.Asked.ItemBarcode)), append(itemIDs, nullIfEmpty(m.Asked.ItemID))
		titles, userIDs = append(titles, m.Asked.TitleLevel), append(userIDs, nullIfEmpty(m.Asked.UserID))
	}
	statement, args := severalFactsSQL, []any{users, items, schemas.MaxQueue, proxies, itemIDs, titles, userIDs}
	if !slices.ContainsFunc(group, func(m *member[schemas.CheckOutSubjects, factsRow]) bool { return !namesBarcodesOnly(m.Asked) }) {
		statement, args = severalBarcodeFactsSQL, args[:3]
	}
	return queryGroup(ctx, conn, statement, args, func(rows pgx.Rows) error {
		for _, m := range group {
			if !rows.Next() {
				break
			}
			if err := rows.Scan(m.Answer.fields()...); err != nil {
				return err
			}
		}
		return nil
	})
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
	return fast.Unmarshal(list, into)
}
