package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

func errNoLock() error { return fault.New(fault.NotFound, "There is no such lock") }

// forceReleaseSQL gives the row another id, so that no refresh resumes the lock.
var forceReleaseSQL = `
WITH ended AS (
    UPDATE {schema}.lock l SET ended_at = clock_timestamp(), id = $4::uuid
     WHERE ` + keyed + ` AND l.id = $3::uuid AND ` + live + `
    RETURNING ` + lockColumns + `),
noted AS (
    INSERT INTO {schema}.forced_release (fence, namespace, name, owner, forced_by, reason)
    SELECT fence, namespace, name, owner, $5::text, $6::text FROM ended)
SELECT ` + lockColumnNames + ` FROM ended`

// ForceRelease implements engine.LockStore.
func (s *LockStore) ForceRelease(ctx context.Context, key engine.Key, id uuid.UUID, n engine.Note) (engine.Lock, error) {
	l, err := s.changeLive(ctx, "releasing a lock by force", bounds, forceReleaseSQL, key.Namespace, key.Name, id, uuid.New(), n.By, n.Reason)
	l.ID = id
	return l, err
}

// changeLive runs a statement that changes a live lock, and returns the lock. Fault: NotFound.
func (s *LockStore) changeLive(ctx context.Context, op, bounds, statement string, args ...any) (l engine.Lock, err error) {
	err = s.changeLock(ctx, s.db.unreserved, op, bounds, statement, args, lockFields(&l), func() bool { return false })
	if isNoRow(err) {
		return engine.Lock{}, errNoLock()
	}
	return l, err
}

// askSQL appends the request, without an earlier one of the same asker, and keeps the
// latest.
var askSQL = strings.ReplaceAll(`
UPDATE {schema}.lock l
   SET requests = (
       SELECT jsonb_agg(kept.r ORDER BY kept.n)
         FROM (SELECT r, n FROM jsonb_array_elements(coalesce(l.requests, '[]') || jsonb_build_array(
                    jsonb_build_object('by', $3::text, 'name', $4::text, 'message', $5::text, 'at', {now})
                )) WITH ORDINALITY asked(r, n)
                WHERE r ->> 'by' <> $3::text OR n > coalesce(jsonb_array_length(l.requests), 0)
                ORDER BY n DESC LIMIT $6::bigint) kept)
 WHERE `+keyed+` AND `+live+`
RETURNING `+lockColumns, "{now}", `to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`)

// Ask implements engine.LockStore.
func (s *LockStore) Ask(ctx context.Context, key engine.Key, a engine.AskedFor) (engine.Lock, error) {
	return s.changeLive(ctx, "asking for a lock", lazyBounds, askSQL, key.Namespace, key.Name, a.By, a.Name, a.Message, engine.MaxRequests)
}

// The statements of a sweep look only at rows that are due. $1 is how long an ended lock
// stays.
var (
	expireSQL = `
UPDATE {schema}.lock l SET ended_at = least(l.expires_at, clock_timestamp()), sweep_after = ` + sweepTime(`(l.expires_at + $1::interval)`) + `
  FROM (SELECT d.namespace, d.name FROM {schema}.lock d
         WHERE d.sweep_after <= clock_timestamp() AND d.ended_at IS NULL ORDER BY d.sweep_after LIMIT $2::bigint) due
 WHERE l.namespace = due.namespace AND l.name = due.name AND l.ended_at IS NULL AND NOT ` + live + `
RETURNING ` + lockColumns

	forgetSQL = `
DELETE FROM {schema}.lock l
 USING (SELECT d.namespace, d.name FROM {schema}.lock d
         WHERE d.sweep_after <= clock_timestamp() AND d.ended_at < clock_timestamp() - $1::interval ORDER BY d.sweep_after LIMIT $2::bigint) due
 WHERE l.namespace = due.namespace AND l.name = due.name AND l.ended_at < clock_timestamp() - $1::interval`

	postponeSQL = `
UPDATE {schema}.lock l SET sweep_after = ` + sweepTime(`greatest(clock_timestamp(), l.ended_at + $1::interval)`) + `
  FROM (SELECT d.namespace, d.name FROM {schema}.lock d
         WHERE d.sweep_after <= clock_timestamp() AND d.ended_at IS NOT NULL ORDER BY d.sweep_after LIMIT $2::bigint) due
 WHERE l.namespace = due.namespace AND l.name = due.name AND l.ended_at IS NOT NULL`
)

// forgetFactor is how many ended locks a sweep may forget for each expiry that it counts.
const forgetFactor = 10

// Sweep implements engine.LockStore. It is three statements, each a transaction, so that
// it holds few row locks at once.
func (s *LockStore) Sweep(ctx context.Context, keep time.Duration, limit int) ([]engine.Lock, error) {
	const op = "sweeping locks"
	for _, statement := range []string{forgetSQL, postponeSQL} {
		if _, err := s.db.exec(ctx, s.db.ordinary, op, bounds, statement, keep, forgetFactor*limit); err != nil {
			return nil, err
		}
	}
	var expired []engine.Lock
	err := s.db.write(ctx, s.db.ordinary, op, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		expired, err = database.CollectRows(ctx, conn, bounds, s.db.nameSchema(conn, expireSQL), []any{keep, limit}, scanLock)
		return err
	})
	return expired, err
}

const releasesSQL = `
SELECT forced_by, reason, namespace, name, owner, fence, at FROM {schema}.forced_release ORDER BY id DESC LIMIT $1::bigint`

// Releases implements engine.LockStore.
func (s *LockStore) Releases(ctx context.Context, limit int) ([]engine.Release, error) {
	return readRows(ctx, s.db, s.db.ordinary, "listing forced releases", releasesSQL, []any{limit},
		func(row pgx.CollectableRow) (r engine.Release, err error) {
			err = row.Scan(&r.By, &r.Reason, &r.Namespace, &r.Name, &r.Owner, &r.Fence, (*database.UTCTime)(&r.At))
			return r, err
		})
}

const sweepReleasesSQL = `DELETE FROM {schema}.forced_release WHERE at < clock_timestamp() - $1::interval`

// SweepReleases deletes the notes of forced releases older than a time, and returns how
// many.
func (s *LockStore) SweepReleases(ctx context.Context, olderThan time.Duration) (int, error) {
	return s.db.exec(ctx, s.db.ordinary, "deleting old forced releases", bounds, sweepReleasesSQL, olderThan)
}
