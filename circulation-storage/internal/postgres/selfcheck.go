package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/schemas"
)

// reportTerminalsSQL keeps a report in one statement, dated by statement_timestamp(). Each instance has
// rows of its own, so instances never wait for each other. Rows go in by key, as reports of one instance
// may overlap. A new note takes the place of the oldest ones beyond the bound.
const reportTerminalsSQL = `
WITH settings AS MATERIALIZED (SELECT ` + notDurable + `),
states AS (
    INSERT INTO {schema}.self_check_state AS s
           (instance, login, reported_date, connections, address, connected_date, last_message, last_date, attention, counts)
    SELECT DISTINCT ON (t.login) $1::text, t.login, statement_timestamp(), coalesce(t.connections, 0), t.address,
           CASE WHEN t.connections > 0 THEN statement_timestamp() - coalesce(t."connectedMs", 0) * interval '1 ms' END,
           t."lastMessage", CASE WHEN t."lastMessage" <> '' THEN statement_timestamp() - coalesce(t."lastMs", 0) * interval '1 ms' END,
           t.attention, coalesce(t.counts, '[]')
      FROM settings, json_to_recordset($2::json) AS t(login text, connections integer, address text, "connectedMs" bigint,
           "lastMessage" text, "lastMs" bigint, attention text, counts jsonb)
     ORDER BY t.login
        ON CONFLICT ON CONSTRAINT self_check_state_pkey DO UPDATE
       SET reported_date = excluded.reported_date, connections = excluded.connections, address = excluded.address,
           connected_date = excluded.connected_date, attention = excluded.attention, counts = excluded.counts,
           last_message = coalesce(excluded.last_message, s.last_message), last_date = coalesce(excluded.last_date, s.last_date)),
added AS (
    INSERT INTO {schema}.self_check_note (id, noted_date, instance, login, kind, code, user_barcode, item_barcode, loan_id)
    SELECT n.id, statement_timestamp() - coalesce(n."agoMs", 0) * interval '1 ms', $1::text, n.login, n.kind, n.code,
           n."userBarcode", n."itemBarcode", n."loanId"
      FROM settings, json_to_recordset($3::json) AS n(id uuid, "agoMs" bigint, login text, kind text, code text,
           "userBarcode" text, "itemBarcode" text, "loanId" uuid)
     ORDER BY n.id
        ON CONFLICT ON CONSTRAINT self_check_note_pkey DO NOTHING
    RETURNING id)
DELETE FROM {schema}.self_check_note n
 USING (SELECT o.id FROM {schema}.self_check_note o
         ORDER BY o.noted_date DESC, o.id OFFSET greatest(0, $4::bigint - (SELECT count(*) FROM added))) surplus
 WHERE n.id = surplus.id AND EXISTS (SELECT FROM added)`

// ReportTerminals implements httpapi.TerminalStore.
func (s *RecordStore) ReportTerminals(ctx context.Context, instance string, r schemas.TerminalReport) error {
	terminals, err := marshalList(r.Terminals)
	if err != nil {
		return fmt.Errorf("writing states of terminals: %w", err)
	}
	notes, err := marshalList(r.Notes)
	if err != nil {
		return fmt.Errorf("writing notes of terminals: %w", err)
	}
	_, err = s.db.exec(ctx, s.db.conns.Ordinary, "keeping what terminals did", reportTerminalsSQL, instance, terminals, notes, schemas.MaxTerminalNotes)
	return err
}

// marshalList writes a list; null would be none for PostgreSQL.
func marshalList[T any](list []T) (string, error) {
	content, err := json.Marshal(append([]T{}, list...))
	return string(content), err
}

var terminalCounts = `interval '` + strconv.Itoa(schemas.TerminalCountsMs) + ` ms'`

// terminalStatesSQL joins what all instances reported of a terminal. Connections count while the report
// is young: an instance that died reports no end of them. What is counted counts until the end of its
// slot is an hour old.
var terminalStatesSQL = `
WITH known AS (
    SELECT s.*, n.*, s.connections > 0 AND s.reported_date BETWEEN statement_timestamp() - ` + terminalCounts + `
               AND statement_timestamp() + ` + terminalCounts + ` AS connected
      FROM {schema}.self_check_state s, LATERAL (
           SELECT sum(c.out) AS check_outs, sum(c.refused) AS refused, sum(c.repeated) AS repeated,
                  sum(c.unreadable) AS unreadable, sum(c.wrong) AS wrong_logins
             FROM ROWS FROM (jsonb_to_recordset(s.counts) AS ("checkOuts" integer, refused integer, repeated integer,
                  unreadable integer, "wrongLogins" integer)) WITH ORDINALITY AS c(out, refused, repeated, unreadable, wrong, slot)
            WHERE s.reported_date - (c.slot - 1) * $2::interval > statement_timestamp() - interval '1 hour') n)
SELECT login, coalesce(sum(connections) FILTER (WHERE connected), 0),
       coalesce((array_agg(address ORDER BY connected_date DESC) FILTER (WHERE connected))[1], ''),
       max(connected_date) FILTER (WHERE connected),
       coalesce((array_agg(last_message ORDER BY last_date DESC NULLS LAST))[1], ''), max(last_date),
       coalesce((array_agg(attention ORDER BY last_date DESC NULLS LAST))[1], ''),
       coalesce(sum(check_outs), 0)::bigint, coalesce(sum(refused), 0)::bigint, coalesce(sum(repeated), 0)::bigint,
       coalesce(sum(unreadable), 0)::bigint, coalesce(sum(wrong_logins), 0)::bigint,
       coalesce(array_agg(instance ORDER BY instance) FILTER (WHERE connected), '{}')
  FROM known GROUP BY login ORDER BY login LIMIT $1::bigint`

const terminalNotesSQL = `
SELECT id::text, noted_date, instance, login, kind, coalesce(code, ''), coalesce(user_barcode, ''), coalesce(item_barcode, ''),
       coalesce(loan_id::text, '')
  FROM {schema}.self_check_note ORDER BY noted_date DESC, id LIMIT $1::bigint`

// TerminalActivity implements httpapi.TerminalStore.
func (s *RecordStore) TerminalActivity(ctx context.Context) (schemas.TerminalActivity, error) {
	var a schemas.TerminalActivity
	var err error
	args := []any{schemas.MaxListedTerminals, schemas.TerminalSlotMinutes * time.Minute}
	if a.Terminals, err = readRows(ctx, s.db, "listing what terminals did", terminalStatesSQL, args, scanTerminalState); err != nil {
		return a, err
	}
	a.Notes, err = readRows(ctx, s.db, "listing notes of terminals", terminalNotesSQL, []any{schemas.MaxTerminalNotes}, scanTerminalNote)
	return a, err
}

func scanTerminalState(row pgx.CollectableRow) (schemas.TerminalState, error) {
	var n schemas.TerminalCounts
	t := schemas.TerminalState{LastHour: &n}
	err := row.Scan(&t.Login, &t.Connections, &t.Address, (*folioTime)(&t.ConnectedDate), &t.LastMessage, (*folioTime)(&t.LastDate),
		&t.Attention, &n.CheckOuts, &n.Refused, &n.Repeated, &n.Unreadable, &n.WrongLogins, &t.Instances)
	return t, err
}

func scanTerminalNote(row pgx.CollectableRow) (schemas.TerminalNote, error) {
	var n schemas.TerminalNote
	err := row.Scan(&n.ID, (*folioTime)(&n.Date), &n.Instance, &n.Login, &n.Kind, &n.Code, &n.UserBarcode, &n.ItemBarcode, &n.LoanID)
	return n, err
}

// Rows ahead of the clock go too: it was set back.
const sweepTerminalsSQL = `
WITH settings AS MATERIALIZED (SELECT ` + notDurable + `),
gone AS (
    DELETE FROM {schema}.self_check_state s USING settings
     WHERE s.reported_date NOT BETWEEN statement_timestamp() - $1::interval AND statement_timestamp() + $1::interval),
old AS (
    SELECT n.id FROM settings, {schema}.self_check_note n
     WHERE n.noted_date NOT BETWEEN statement_timestamp() - $2::interval AND statement_timestamp() + $2::interval
     LIMIT $3::bigint` + skipLocked + `)
DELETE FROM {schema}.self_check_note n USING old WHERE n.id = old.id`

// SweepTerminals deletes states that were not reported for schemas.TerminalStateDays, and at most limit
// notes of schemas.TerminalNoteDays. It returns how many notes.
func (s *RecordStore) SweepTerminals(ctx context.Context, limit int) (int, error) {
	const day = 24 * time.Hour
	return s.db.sweep(ctx, "sweeping what terminals did", sweepTerminalsSQL,
		schemas.TerminalStateDays*day, schemas.TerminalNoteDays*day, limit)
}
