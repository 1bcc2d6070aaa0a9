package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// LockChangeStore reads who changed what about the check-out lock. LockSettingsStore,
// RecordStore and LockStore.ForceRelease write it, each in the transaction of its change.
type LockChangeStore struct{ db *DB }

// NewLockChangeStore returns the changes of all tenants in db.
func NewLockChangeStore(db *DB) *LockChangeStore { return &LockChangeStore{db: db} }

// whoAndWhy are the values of the columns user_id, user_name, reason and
// request_id for the parameters that noteArgs returns.
const whoAndWhy = `nullif($1::text, '')::uuid, nullif($2::text, ''), nullif($3::text, ''), nullif($4::text, '')`

func noteArgs(ctx context.Context, n lock.Note, more ...any) []any {
	c := okapi.FromContext(ctx)
	return append([]any{c.UserID, n.By, n.Reason, c.RequestID}, more...)
}

// It stands after the statement that changes the entry, which it reads as changed.
const noteSettingsSQL = `
INSERT INTO {schema}.check_out_lock_change (kind, user_id, user_name, reason, request_id, before, after)
VALUES ('` + schemas.ChangeSettings + `', ` + whoAndWhy + `, nullif($5::text, '')::jsonb->'value',
    (SELECT e.jsonb->'value' FROM {schema}.settings_entry e WHERE ` + isLockSettings + `))`

// noteSettings adds a statement that notes a change of the lock settings; before is
// the entry as it was, nil for none.
func (b *batch) noteSettings(ctx context.Context, n lock.Note, before json.RawMessage) {
	b.query(noteSettingsSQL, noteArgs(ctx, n, string(before)))
}

// One statement, so that each forced release is noted. Unlike the statements of the
// locks' holders it is durable.
var forceReleaseSQL = `
WITH gone ` + lockColumnNames + ` AS (
    DELETE FROM {schema}.check_out_lock l WHERE l.id = $5::uuid RETURNING ` + lockColumns + `),
noted AS (
    INSERT INTO {schema}.check_out_lock_change (kind, user_id, user_name, reason, request_id, lock_id, lock_user_id,
        lock_creation_date, lock_ttl_ms, lock_request_id, lock_holder, lock_okapi_request_id, lock_outdated)
    SELECT '` + schemas.ChangeRelease + `', ` + whoAndWhy + `, id, user_id,
        creation_date, ttl_ms, request_id, nullif(holder, ''), nullif(okapi_request_id, ''), outdated
      FROM gone)
SELECT * FROM gone`

// ForceRelease implements lock.Store.
func (s *LockStore) ForceRelease(ctx context.Context, id uuid.UUID, n lock.Note) (lock.Lock, error) {
	return s.deleteDurably(ctx, "releasing a lock by force", forceTx, forceReleaseSQL, noteArgs(ctx, n, id))
}

const listChangesSQL = `
SELECT counted.total, page.*
  FROM (SELECT count(*) AS total FROM {schema}.check_out_lock_change WHERE $1::text = '' OR kind = $1::text) counted
  LEFT JOIN (
    SELECT id, changed_date, kind, user_id, coalesce(user_name, ''), coalesce(reason, ''), coalesce(request_id, ''),
           before::text, after::text,
           lock_id, lock_user_id, lock_creation_date, lock_ttl_ms, lock_request_id, coalesce(lock_holder, ''),
           coalesce(lock_okapi_request_id, ''), coalesce(lock_outdated, false)
      FROM {schema}.check_out_lock_change
     WHERE $1::text = '' OR kind = $1::text
     ORDER BY changed_date DESC, id DESC OFFSET $2::bigint LIMIT $3::bigint) page ON true
 ORDER BY page.changed_date DESC, page.id DESC`

// List implements httpapi.LockChanges.
func (s *LockChangeStore) List(ctx context.Context, kind string, offset, limit int) ([]lock.Change, int, error) {
	return readPage(ctx, s.db, "listing changes of the lock", listChangesSQL, []any{kind, offset, limit}, scanChange)
}

// scanChange reads a row of listChangesSQL.
func scanChange(row pgx.Row, total *int) (lock.Change, error) {
	var c lock.Change
	var l lock.Lock
	err := row.Scan(total, &c.ID, (*database.UTCTime)(&c.Date), &c.Kind, (*optionalID)(&c.UserID), &c.Note.By, &c.Note.Reason, &c.RequestID, &c.Before, &c.After,
		(*optionalID)(&l.ID), (*optionalID)(&l.UserID), (*database.UTCTime)(&l.CreatedAt), (*millis)(&l.TTL), (*optionalID)(&l.AcquisitionID),
		&l.Holder, &l.OkapiRequestID, &l.Outdated)
	if err == nil && l.ID != uuid.Nil {
		l.Age = c.Date.Sub(l.CreatedAt)
		c.Lock = &l
	}
	return c, err
}

const blankReleasesSQL = `
WITH old AS (
    SELECT c.id FROM {schema}.check_out_lock_change c
     WHERE c.lock_user_id IS NOT NULL AND c.changed_date < now() - $1::interval LIMIT $2::bigint` + skipLocked + `)
UPDATE {schema}.check_out_lock_change c SET lock_user_id = NULL FROM old WHERE c.id = old.id`

// BlankReleases removes the patron from at most limit forced releases that are
// older than age, by the database's clock, and returns how many. The changes stay.
func (s *LockChangeStore) BlankReleases(ctx context.Context, age time.Duration, limit int) (int, error) {
	return s.db.sweep(ctx, "removing patrons from old changes", blankReleasesSQL, age, limit)
}
