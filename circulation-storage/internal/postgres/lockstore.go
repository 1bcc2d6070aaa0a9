package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

// acquireTimeout bounds an acquire once it is sent. It takes about a millisecond, and
// 250 ms if it waits for a row lock.
const acquireTimeout = 5 * time.Second

// outdated is when a lock l equals no lock, for {grace} already. It is strictly older than
// its {ttl}, or its date is so far ahead that the clock was set back. It reads
// clock_timestamp(), because now() stands still while a statement waits for a row. Lock
// dates compare the same in every time zone, as the column is a timestamptz.
const outdated = `(l.creation_date + {ttl} * interval '1 ms' < clock_timestamp() - {grace}
    OR l.creation_date > clock_timestamp() + interval '5 s' + {grace})`

func outdatedBy(ttl, grace string) string {
	return strings.NewReplacer("{ttl}", ttl, "{grace}", grace).Replace(outdated)
}

// own judges a lock by its own TTL; forRequest also by that of the request, in $2;
// longAgo also by the grace in $1.
var (
	own        = outdatedBy("l.ttl_ms", "interval '0'")
	forRequest = outdatedBy("least(l.ttl_ms, $2::integer)", "interval '0'")
	longAgo    = outdatedBy("l.ttl_ms", "$1::interval")
)

// lockColumns are what lockFields takes, lockColumnNames their names in a part of a
// statement.
var lockColumns = `l.id, l.user_id, l.creation_date, l.ttl_ms, l.request_id, coalesce(l.holder, ''), coalesce(l.okapi_request_id, ''), ` + own +
	`, clock_timestamp() - l.creation_date`

const lockColumnNames = `(id, user_id, creation_date, ttl_ms, request_id, holder, okapi_request_id, outdated, age)`

// notDurable lets a statement return before its WAL is on disk: the loss of a lock in a
// crash only refuses its holder's commit. It holds for its own transaction.
const notDurable = `set_config('synchronous_commit', 'off', true)`

// One statement decides, so no two callers can both read and then both write.
//
//   - The settings in the first part hold for this transaction alone, also through
//     PgBouncer. They end the wait for a row that a commit has locked early.
//   - A lock keeps its id only for the request that has it. Both conditions stand in the
//     CASE too, because the clock moves on after the WHERE.
//   - xmax is 0 only in a row that was inserted.
var acquireSQL = `
WITH settings AS MATERIALIZED (
    SELECT set_config('lock_timeout', '250ms', true), ` + notDurable + `, gen_random_uuid() AS fresh)
INSERT INTO {schema}.check_out_lock AS l (id, user_id, creation_date, ttl_ms, request_id, holder, okapi_request_id)
SELECT fresh, $1::uuid, clock_timestamp(), $2::integer, $3::uuid, nullif($4::text, ''), nullif($5::text, '') FROM settings
ON CONFLICT ON CONSTRAINT check_out_lock_user_id_key DO UPDATE
   SET id = CASE WHEN l.request_id = excluded.request_id AND NOT ` + forRequest + ` THEN l.id ELSE excluded.id END,
       creation_date = clock_timestamp(),
       ttl_ms = excluded.ttl_ms, request_id = excluded.request_id, holder = excluded.holder,
       okapi_request_id = excluded.okapi_request_id
 WHERE l.request_id = excluded.request_id OR ` + forRequest + `
RETURNING ` + lockColumns + `, l.xmax = 0, l.id = (SELECT fresh FROM settings)`

// LockStore implements lock.Store on the table check_out_lock. It groups acquires, releases
// by id, and reads of patrons' locks.
type LockStore struct {
	db       *DB
	acquires *groups[lock.Request, lock.Lock]
	releases *groups[uuid.UUID, lock.Lock]
	peeks    *groups[lock.Request, lock.Peek]
}

var _ lock.Store = (*LockStore)(nil)

// NewLockStore returns the lock store of all tenants in db.
func NewLockStore(db *DB) *LockStore {
	return &LockStore{
		db:       db,
		acquires: &groups[lock.Request, lock.Lock]{Pool: db.conns.Urgent, Send: sendAcquires},
		releases: &groups[uuid.UUID, lock.Lock]{Pool: db.conns.Urgent, Send: sendReleases},
		peeks:    &groups[lock.Request, lock.Peek]{Pool: db.conns.Urgent, Send: sendPeeks},
	}
}

// Acquire implements lock.Store.
func (s *LockStore) Acquire(ctx context.Context, req lock.Request) (lock.Lock, lock.Outcome, error) {
	outcome := lock.Granted
	l, err := runInGroup(ctx, s.acquires, req)
	if errors.Is(err, database.ErrRunAlone) {
		l, outcome, err = s.acquire(ctx, req)
	}
	code, _ := database.SQLState(err)
	switch {
	case errors.Is(err, pgx.ErrNoRows), code == database.LockNotAvailable:
		return lock.Lock{}, "", lock.ErrHeld()
	case err != nil:
		return lock.Lock{}, "", toFault("acquiring a lock", err)
	}
	return l, outcome, nil
}

func (s *LockStore) acquire(ctx context.Context, req lock.Request) (lock.Lock, lock.Outcome, error) {
	var l lock.Lock
	var inserted, fresh bool
	args := []any{req.UserID, req.TTL.Milliseconds(), nullable(req.AcquisitionID), req.Holder, req.OkapiRequestID}
	err := s.grantRow(ctx, acquireSQL, args, lockFields(&l, &inserted, &fresh)...)
	switch {
	case inserted:
		return l, lock.Granted, err
	case fresh:
		return l, lock.TakenOver, err
	}
	return l, lock.Renewed, err
}

// grantRow runs a statement that grants a lock, and reads its only row into dest. It returns
// pgx.ErrNoRows without one.
func (s *LockStore) grantRow(ctx context.Context, statement string, args []any, dest ...any) error {
	conn, err := s.db.conns.Urgent.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("getting a connection: %w", err)
	}
	defer conn.Release()
	// From here on the end of the caller must not lose the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acquireTimeout)
	defer cancel()
	return scanRow(ctx, conn, statement, args, dest...)
}

const withdrawSQL = `
DELETE FROM {schema}.check_out_lock WHERE id = $1::uuid AND creation_date = $2::timestamptz RETURNING ` + notDurable

// Withdraw implements lock.Store.
func (s *LockStore) Withdraw(ctx context.Context, l lock.Lock) error {
	_, err := s.db.exec(ctx, s.db.conns.Urgent, "withdrawing a lock", withdrawSQL, l.ID, l.CreatedAt)
	return err
}

var releaseSQL = `
DELETE FROM {schema}.check_out_lock l WHERE l.id = $1::uuid RETURNING ` + lockColumns + `, ` + notDurable

// Release implements lock.Store.
func (s *LockStore) Release(ctx context.Context, id uuid.UUID) (lock.Lock, error) {
	l, err := runInGroup(ctx, s.releases, id)
	if errors.Is(err, database.ErrRunAlone) {
		return s.release(ctx, "releasing a lock", releaseSQL, id)
	}
	return l, toFault("releasing a lock", err)
}

// A durable release writes a WAL record of its own, also without a lock. A release or
// takeover just before did not wait for the disk, and a crash would undo it.
const flushSQL = `SELECT pg_logical_emit_message(true, 'check_out_lock', 'settled')`

var releaseDurablySQL = `DELETE FROM {schema}.check_out_lock l WHERE l.id = $1::uuid RETURNING ` + lockColumns

// ReleaseDurably implements lock.Store.
func (s *LockStore) ReleaseDurably(ctx context.Context, id uuid.UUID) (lock.Lock, error) {
	return s.deleteDurably(ctx, "releasing a lock durably", shortTx, releaseDurablySQL, []any{id}, flushSQL)
}

// deleteDurably runs a statement that deletes and returns a lock, and others after it,
// in a transaction whose COMMIT is durable.
func (s *LockStore) deleteDurably(ctx context.Context, op string, bounds database.Bounds, statement string, args []any, more ...string) (lock.Lock, error) {
	var l lock.Lock
	found := false
	err := s.db.runTx(ctx, s.db.conns.Urgent, bounds, op, func(tx pgx.Tx) error {
		err := scanRow(ctx, tx, statement, args, lockFields(&l)...)
		found = err == nil
		if !found && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		for _, statement := range more {
			if _, err := runStatement(ctx, tx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !found {
		err = errNoLock()
	}
	return l, err
}

func errNoLock() error { return fault.New(fault.NotFound, "Lock not found") }

var releaseAcquisitionSQL = `
DELETE FROM {schema}.check_out_lock l WHERE l.user_id = $1::uuid AND l.request_id = $2::uuid RETURNING ` + lockColumns + `, ` + notDurable

// ReleaseAcquisition implements lock.Store.
func (s *LockStore) ReleaseAcquisition(ctx context.Context, userID, acquisitionID uuid.UUID) (lock.Lock, error) {
	return s.release(ctx, "releasing the lock of a request", releaseAcquisitionSQL, userID, acquisitionID)
}

func (s *LockStore) release(ctx context.Context, op, statement string, args ...any) (lock.Lock, error) {
	var l lock.Lock
	var setting string
	err := s.db.writeRow(ctx, s.db.conns.Urgent, op, statement, args, lockFields(&l, &setting)...)
	if err != nil {
		return lock.Lock{}, explainNoRow(err, errNoLock())
	}
	return l, nil
}

var getSQL = `SELECT ` + lockColumns + ` FROM {schema}.check_out_lock l WHERE l.id = $1::uuid`

// Get implements lock.Store.
func (s *LockStore) Get(ctx context.Context, id uuid.UUID) (lock.Lock, error) {
	var l lock.Lock
	err := s.db.readRow(ctx, s.db.conns.Urgent, "reading a lock", getSQL, []any{id}, lockFields(&l)...)
	if err != nil {
		return lock.Lock{}, explainNoRow(err, errNoLock())
	}
	return l, nil
}

// The count stands in a part of its own, so that an empty page has it too. Each lock is
// judged once, so that the page shows it as the filter saw it.
var listSQL = `
WITH seen ` + lockColumnNames + ` AS MATERIALIZED (
    SELECT ` + lockColumns + ` FROM {schema}.check_out_lock l
     WHERE ($1::uuid IS NULL OR l.user_id = $1::uuid) AND ($2::text = '' OR l.holder = $2::text)),
matching AS (SELECT * FROM seen WHERE $3::boolean IS NULL OR outdated = $3::boolean)
SELECT counted.total, page.*
  FROM (SELECT count(*) AS total FROM matching) counted
  LEFT JOIN (SELECT * FROM matching ORDER BY creation_date, id OFFSET $4::bigint LIMIT $5::bigint) page ON true
 ORDER BY page.creation_date, page.id`

// List implements lock.Store.
func (s *LockStore) List(ctx context.Context, f lock.Filter) ([]lock.Lock, int, error) {
	args := []any{nullable(f.UserID), f.Holder, f.Outdated, f.Offset, f.Limit}
	return readPage(ctx, s.db, "listing locks", listSQL, args, func(row pgx.Row, total *int) (lock.Lock, error) {
		var l lock.Lock
		err := row.Scan(append([]any{total}, lockFields(&l)...)...)
		return l, err
	})
}

var sweepSQL = `
WITH old AS (
    SELECT l.id FROM {schema}.check_out_lock l WHERE ` + longAgo + ` LIMIT $2::bigint` + skipLocked + `)
DELETE FROM {schema}.check_out_lock l USING old WHERE l.id = old.id
RETURNING ` + notDurable

// Sweep implements lock.Store.
func (s *LockStore) Sweep(ctx context.Context, grace time.Duration, limit int) (int, error) {
	return s.db.sweep(ctx, "sweeping locks", sweepSQL, grace, limit)
}

var heldSQL = `SELECT count(*) FROM {schema}.check_out_lock l WHERE NOT ` + own

// lockFields are what lockColumns are read into, and after them more.
func lockFields(l *lock.Lock, more ...any) []any {
	return append([]any{
		&l.ID, &l.UserID, (*database.UTCTime)(&l.CreatedAt), (*millis)(&l.TTL), (*optionalID)(&l.AcquisitionID), &l.Holder, &l.OkapiRequestID,
		&l.Outdated, &l.Age,
	}, more...)
}
