package postgres

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
)

// live reads clock_timestamp(), because now() stands still while a statement waits for a
// row.
var live = liveAt(`clock_timestamp()`)

// liveAt is that a lock l is live at a time. A lock that was renewed later than that was so
// before the clock was set back, and equals no lock. The clocks of a primary and of a
// standby that follows it may differ by 5 s.
func liveAt(at string) string {
	return `(l.ended_at IS NULL AND l.expires_at > ` + at + ` AND l.renewed_at <= ` + at + ` + interval '5 s')`
}

// Parts of the statements about locks l.
const (
	// keyed selects the lock of a key.
	keyed = `l.namespace = $1::text AND l.name = $2::text`

	// clock reads the clock once for several columns. OFFSET keeps the planner from copying
	// the call.
	clock = `(SELECT clock_timestamp() AS at OFFSET 0) c`
)

// sweepTime returns when a sweep looks at a row that is due at a time.
func sweepTime(at string) string {
	return `date_bin('1 minute', ` + at + `, timestamptz '2000-01-01 00:00:00+00') + interval '1 minute'`
}

// lockColumns are what lockFields takes, lockColumnNames their names in a part.
const (
	lockColumns = `l.namespace, l.name, l.id, l.fence, l.owner, l.kind, l.value, l.granted_at, l.renewed_at, l.expires_at, l.requests`

	lockColumnNames = `namespace, name, id, fence, owner, kind, value, granted_at, renewed_at, expires_at, requests`
)

// lockFields are what lockColumns are read into, and after them more.
func lockFields(l *engine.Lock, more ...any) []any {
	return append([]any{
		&l.Namespace, &l.Name, &l.ID, &l.Fence, &l.Owner, &l.Kind, &l.Value,
		(*database.UTCTime)(&l.GrantedAt), (*database.UTCTime)(&l.RenewedAt), (*database.UTCTime)(&l.ExpiresAt), &l.Requests,
	}, more...)
}

// acquireSQL decides in one statement, so no two callers can both read and then both
// write.
//
//   - The first part reads the lock that refuses the caller. A refused caller locks no row
//     and writes nothing.
//   - A row that is free, outdated or the owner's is taken. The clock is read once more
//     under the lock of the row, and one subquery judges, so that all columns agree.
//   - It returns nothing if another caller took the row meanwhile.
var acquireSQL = `
WITH refused AS MATERIALIZED (
    SELECT ` + lockColumns + `, l.replaced FROM {schema}.lock l
     WHERE ` + keyed + ` AND ` + live + ` AND (l.owner <> $3::text OR $8::boolean)),
taken AS (
    INSERT INTO {schema}.lock AS l (namespace, name, id, fence, owner, kind, value,
           granted_at, renewed_at, expires_at, sweep_after, replaced)
    SELECT $1::text, $2::text, $7::uuid, nextval('{schema}.lock_fence'), $3::text, $4::text, $5::text,
           c.at, c.at, c.at + $6::interval, ` + sweepTime(`(c.at + $6::interval)`) + `, false
      FROM ` + clock + `
     WHERE NOT EXISTS (SELECT FROM refused)
    ON CONFLICT ON CONSTRAINT lock_pkey DO UPDATE
       SET (id, fence, owner, kind, value, granted_at, renewed_at, expires_at, sweep_after, ended_at, replaced, requests) = (
           SELECT CASE WHEN j.own THEN l.id ELSE excluded.id END,
                  CASE WHEN j.own THEN l.fence ELSE nextval('{schema}.lock_fence') END,
                  excluded.owner, excluded.kind, excluded.value,
                  CASE WHEN j.own THEN l.granted_at ELSE j.at END,
                  j.at, j.at + $6::interval, ` + sweepTime(`(j.at + $6::interval)`) + `, NULL::timestamptz,
                  CASE WHEN j.own THEN l.replaced ELSE l.ended_at IS NULL END,
                  CASE WHEN j.own THEN l.requests END
             FROM (SELECT c.at, l.owner = excluded.owner AND ` + liveAt(`c.at`) + ` AS own
                     FROM ` + clock + ` OFFSET 0) j)
     WHERE NOT ` + live + ` OR l.owner = excluded.owner AND NOT $8::boolean
    RETURNING ` + lockColumns + `, l.replaced)
SELECT ` + lockColumnNames + `, replaced, true FROM taken
UNION ALL
SELECT ` + lockColumnNames + `, replaced, false FROM refused`

// LockStore implements engine.LockStore on the table lock. It groups renewals, and the
// reads that refuse callers which were refused lately.
type LockStore struct {
	db       *DB
	hints    hints
	renewals *acquireGroups
	refusals *acquireGroups
}

var _ engine.LockStore = (*LockStore)(nil)

// NewLockStore returns the flat locks in db.
func NewLockStore(db *DB) *LockStore {
	return &LockStore{db: db, hints: newHints(), renewals: newRenewals(db), refusals: newRefusals(db)}
}

// Acquire implements engine.LockStore. A hint may be wrong: then the statement for a
// single caller decides. A renewal never waits behind other callers: while those are too
// many, each call is tried as a renewal first.
func (s *LockStore) Acquire(ctx context.Context, a engine.Acquire) (engine.Result, error) {
	hint, on := s.hints.find(a), s.db.unreserved
	if hint == hintHeld {
		on = s.db.urgent
	}
	if !a.Keep && (hint == hintHeld || s.db.unreserved.areBusy()) { // any caller may hold the lock
		g, err := s.renewals.groups.Run(ctx, struct{}{}, a)
		if !errors.Is(err, database.ErrRunAlone) {
			s.hints.note(a, g.Outcome)
			return g, toFault("renewing a lock", err)
		}
	}
	if hint == hintRefused {
		if g, err := s.refusals.groups.Run(ctx, struct{}{}, a); err == nil {
			return g, nil
		}
	}
	var g engine.Result
	err := s.db.write(ctx, on, "acquiring a lock", func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		g, err = tryAcquire(ctx, conn, bounds, s.db.nameSchema(conn, acquireSQL), a)
		if g.Outcome == engine.Kept { // it was only read, and its grant may have no confirmation yet
			_, err = database.Exec(ctx, conn, bounds, database.CommitSQL)
		}
		return err
	})
	if err == nil {
		s.hints.note(a, g.Outcome)
	}
	return g, err
}

// tryAcquire runs acquireSQL, which names its schema.
func tryAcquire(ctx context.Context, conn *pgxpool.Conn, bounds, statement string, a engine.Acquire) (engine.Result, error) {
	id := uuid.New()
	var g engine.Result
	var replaced, taken bool
	args := []any{a.Namespace, a.Name, a.Owner, a.Kind, a.Value, a.TTL, id, a.Keep}
	err := changeRow(ctx, conn, bounds, statement, args, lockFields(&g.Lock, &replaced, &taken), nil)
	switch {
	case err != nil:
		return engine.Result{}, err
	case taken && g.Lock.ID == id:
		g.Outcome, g.Expired = engine.Granted, replaced
	case taken:
		g.Outcome = engine.Renewed
	case g.Lock.Owner == a.Owner:
		g.Outcome = engine.Kept
	default:
		g.Outcome = engine.Held
	}
	return g, nil
}

// changeRow runs a statement that changes a lock or returns the one that it met. It runs
// the statement again while others change the row: without a row, and if stale says so.
// A nil stale means that there always is a row.
func changeRow(ctx context.Context, conn *pgxpool.Conn, bounds, statement string, args, dest []any, stale func() bool) error {
	for range attempts {
		err := database.ScanRow(ctx, conn, bounds, statement, args, dest)
		switch {
		case errors.Is(err, pgx.ErrNoRows) && stale == nil:
			continue
		case err != nil, stale == nil, !stale():
			return err
		}
	}
	return errBusy
}

// changeLock is changeRow on one of the connections.
func (s *LockStore) changeLock(
	ctx context.Context, on connections, op, bounds, statement string, args, dest []any, stale func() bool,
) error {
	return s.db.write(ctx, on, op, func(ctx context.Context, conn *pgxpool.Conn) error {
		return changeRow(ctx, conn, bounds, s.db.nameSchema(conn, statement), args, dest, stale)
	})
}

// refreshSQL renews the live lock or grants the ended one anew. It also returns the row
// as it was before, and whether it could be changed then.
var refreshSQL = `
WITH seen AS MATERIALIZED (
    SELECT ` + lockColumns + `, l.replaced, ` + live + ` AS live, l.owner = $4::text AND (` + live + ` OR ` + resumable + `) AS own
      FROM {schema}.lock l WHERE ` + keyed + ` AND l.id = $3::uuid),
changed AS (
    UPDATE {schema}.lock l
       SET (id, fence, value, granted_at, renewed_at, expires_at, sweep_after, ended_at, replaced, requests) = (
           SELECT CASE WHEN j.live THEN l.id ELSE $7::uuid END,
                  CASE WHEN j.live THEN l.fence ELSE nextval('{schema}.lock_fence') END,
                  CASE WHEN j.live OR $8::text = '' THEN l.value ELSE (l.value::jsonb || $8::text::jsonb)::text END,
                  CASE WHEN j.live THEN l.granted_at ELSE j.at END,
                  j.at, j.at + $5::interval, ` + sweepTime(`(j.at + $5::interval)`) + `, NULL::timestamptz,
                  CASE WHEN j.live THEN l.replaced ELSE l.ended_at IS NULL END,
                  CASE WHEN j.live THEN l.requests END
             FROM (SELECT c.at, ` + liveAt(`c.at`) + ` AS live FROM ` + clock + ` OFFSET 0) j)
     WHERE ` + keyed + ` AND l.id = $3::uuid AND l.owner = $4::text AND (` + live + ` OR ` + resumable + `)
    RETURNING ` + lockColumns + `, l.replaced)
SELECT ` + lockColumnNames + `, replaced, true, true, false FROM changed
UNION ALL
SELECT ` + lockColumnNames + `, replaced, false, live, own FROM seen WHERE NOT EXISTS (SELECT FROM changed)`

// resumable is a lock that has ended less than $6 ago.
const resumable = `coalesce(l.ended_at, l.expires_at) > clock_timestamp() - $6::interval`

// Refresh implements engine.LockStore.
func (s *LockStore) Refresh(ctx context.Context, r engine.Refresh) (engine.Result, error) {
	id := cmp.Or(r.ResumeAs, uuid.New())
	var result engine.Result
	var replaced, changed, live, own bool
	args := []any{r.Namespace, r.Name, r.ID, r.Owner, r.TTL, r.ResumeWithin, id, r.Amend}
	err := s.changeLock(ctx, s.db.urgent, "refreshing a lock", bounds, refreshSQL, args, lockFields(&result.Lock, &replaced, &changed, &live, &own),
		func() bool { return own && !changed })
	switch {
	case err != nil && !isNoRow(err):
		return engine.Result{}, err
	case err != nil, !changed && !live:
		return engine.Result{Outcome: engine.UnknownID}, nil
	case changed && result.Lock.ID == id:
		result.Outcome, result.Expired = engine.Granted, replaced
	case changed:
		result.Outcome = engine.Renewed
	default:
		result.Outcome = engine.Held
	}
	return result, nil
}

// isNoRow reports whether the statement of a fault returned no row.
func isNoRow(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// releaseSQL also returns the live lock as it was before. If that is the owner's and did
// not end, another call changed it meanwhile.
var releaseSQL = `
WITH seen AS MATERIALIZED (SELECT ` + lockColumns + `, l.owner = $3::text AS own FROM {schema}.lock l WHERE ` + keyed + ` AND ` + live + `),
ended AS (
    UPDATE {schema}.lock l SET ended_at = clock_timestamp()
     WHERE ` + keyed + ` AND l.owner = $3::text AND ` + live + `
    RETURNING ` + lockColumns + `)
SELECT ` + lockColumnNames + `, true, true FROM ended
UNION ALL
SELECT ` + lockColumnNames + `, false, own FROM seen WHERE NOT EXISTS (SELECT FROM ended)`

// Release implements engine.LockStore. A crash of PostgreSQL may undo it; the lock then
// lives until its TTL ends.
func (s *LockStore) Release(ctx context.Context, key engine.Key, owner string) (engine.Result, error) {
	var result engine.Result
	var ended, own bool
	err := s.changeLock(ctx, s.db.urgent, "releasing a lock", lazyBounds, releaseSQL, []any{key.Namespace, key.Name, owner}, lockFields(&result.Lock, &ended, &own),
		func() bool { return own && !ended })
	switch {
	case isNoRow(err):
		return engine.Result{Outcome: engine.Free}, nil
	case err != nil:
		return engine.Result{}, err
	case ended:
		result.Outcome = engine.Released
	default:
		result.Outcome = engine.Held
	}
	return result, nil
}

var fetchSQL = `SELECT ` + lockColumns + ` FROM {schema}.lock l WHERE ` + keyed + ` AND ` + live

// Fetch implements engine.LockStore.
func (s *LockStore) Fetch(ctx context.Context, key engine.Key) (engine.Lock, error) {
	var l engine.Lock
	err := s.db.readRow(ctx, s.db.unreserved, "reading a lock", fetchSQL, []any{key.Namespace, key.Name}, lockFields(&l))
	if isNoRow(err) {
		return engine.Lock{}, errNoLock()
	}
	return l, err
}

var listSQL = `SELECT ` + lockColumns + ` FROM {schema}.lock l WHERE ` + live

// List implements engine.LockStore.
func (s *LockStore) List(ctx context.Context, f engine.Filter) ([]engine.Lock, error) {
	statement, args := filterLocks(f)
	return readRows(ctx, s.db, s.db.ordinary, "listing locks", statement, []any{args}, scanLock)
}

// filterLocks returns a statement with a condition for each part of f that is set, so
// that the planner can use the primary key.
func filterLocks(f engine.Filter) (statement string, args pgx.NamedArgs) {
	statement = listSQL
	add := func(set bool, part string) {
		if set {
			statement += part
		}
	}
	add(f.Namespace != "" && f.Prefix, ` AND l.namespace >= @namespace::text AND starts_with(l.namespace, @namespace::text)`)
	add(f.Namespace != "" && !f.Prefix, ` AND l.namespace = @namespace::text`)
	add(f.Names != nil, ` AND l.name = ANY(@names::text[])`)
	add(f.Kind != "", ` AND l.kind = @kind::text`)
	add(f.After != engine.Key{}, ` AND (l.namespace, l.name) > (@after_namespace::text, @after_name::text)`)
	add(true, ` ORDER BY l.namespace, l.name`)
	add(f.Limit > 0, ` LIMIT @limit::bigint`)
	return statement, pgx.NamedArgs{
		"namespace": f.Namespace, "names": f.Names, "kind": f.Kind,
		"after_namespace": f.After.Namespace, "after_name": f.After.Name, "limit": f.Limit,
	}
}

func scanLock(row pgx.CollectableRow) (l engine.Lock, err error) {
	err = row.Scan(lockFields(&l)...)
	return l, err
}

var countSQL = `
SELECT l.namespace, l.kind, count(*) FROM {schema}.lock l WHERE ` + live + ` GROUP BY l.namespace, l.kind ORDER BY l.namespace, l.kind`

// Count implements engine.LockStore.
func (s *LockStore) Count(ctx context.Context) ([]engine.KindCount, error) {
	return readRows(ctx, s.db, s.db.ordinary, "counting locks", countSQL, nil, pgx.RowToStructByPos[engine.KindCount])
}
