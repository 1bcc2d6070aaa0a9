package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/database"
)

// A peek refuses callers, so it must not read an old state.
var peekSQL = `
SELECT ` + forRequest + `, l.id, l.request_id, clock_timestamp() - l.creation_date
  FROM {schema}.check_out_lock l WHERE l.user_id = $1::uuid AND ` + database.OnPrimary

// peekLocksSQL is peekSQL for each of several requests. The subquery keeps one index lookup
// for each.
var peekLocksSQL = `
SELECT l.id IS NULL OR ` + outdatedBy("least(l.ttl_ms, r.ttl_ms)", "interval '0'") + `,
       l.id, l.request_id, coalesce(clock_timestamp() - l.creation_date, interval '0')
  FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS r (user_id, ttl_ms, n)
  LEFT JOIN LATERAL (SELECT * FROM {schema}.check_out_lock WHERE user_id = r.user_id LIMIT 1) l ON true
 WHERE ` + database.OnPrimary + ` ORDER BY r.n`

// Peek implements lock.Store.
func (s *LockStore) Peek(ctx context.Context, req lock.Request) (lock.Peek, error) {
	seen, err := runInGroup(ctx, s.peeks, req)
	if errors.Is(err, database.ErrRunAlone) {
		err = s.db.readRow(ctx, s.db.conns.Urgent, "reading a lock", peekSQL, peekArgs(req), peekFields(&seen)...)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && seen.Free:
		return lock.Peek{Free: true}, nil
	case err != nil:
		return lock.Peek{}, toFault("reading a lock", err)
	}
	return seen, nil
}

func peekArgs(req lock.Request) []any { return []any{req.UserID, req.TTL.Milliseconds()} }

func peekFields(seen *lock.Peek) []any {
	return []any{&seen.Free, (*optionalID)(&seen.LockID), (*optionalID)(&seen.AcquisitionID), &seen.Age}
}

// sendPeeks reads the locks of all members in one statement.
func sendPeeks(ctx context.Context, conn *pgxpool.Conn, group []*member[lock.Request, lock.Peek]) error {
	if len(group) == 1 {
		m := group[0]
		m.Err = scanRow(ctx, conn, peekSQL, peekArgs(m.Asked), peekFields(&m.Answer)...)
		if m.Err != nil && !errors.Is(m.Err, pgx.ErrNoRows) {
			return letReadAlone(ctx, group, m.Err)
		}
		return nil
	}
	err := peekLocks(ctx, conn, group, func(m *member[lock.Request, lock.Peek], seen lock.Peek) { m.Answer, m.Err = seen, nil })
	if err != nil {
		return letReadAlone(ctx, group, err)
	}
	return nil
}

// peekLocks calls judge with each member and the lock of its patron.
func peekLocks[A any](
	ctx context.Context, conn *pgxpool.Conn, members []*member[lock.Request, A], judge func(*member[lock.Request, A], lock.Peek),
) error {
	users, ttls, _ := acquireArrays(members)
	return queryGroup(ctx, conn, peekLocksSQL, []any{users, ttls}, func(rows pgx.Rows) error {
		var seen lock.Peek
		next := 0
		_, err := pgx.ForEachRow(rows, peekFields(&seen), func() error {
			judge(members[next], seen)
			next++
			return nil
		})
		return err
	})
}

// handOverSQL grants the lock to the next request in the statement that releases it. The
// settings are those of acquireSQL. The WHERE judges the row after the wait for a commit,
// so a lock that the commit released is not handed over.
var handOverSQL = `
WITH settings AS MATERIALIZED (SELECT set_config('lock_timeout', '250ms', true), ` + notDurable + `)
UPDATE {schema}.check_out_lock l
   SET id = gen_random_uuid(), creation_date = clock_timestamp(), ttl_ms = $3::integer, request_id = $4::uuid,
       holder = nullif($5::text, ''), okapi_request_id = nullif($6::text, '')
  FROM settings
 WHERE l.id = $1::uuid AND l.user_id = $2::uuid AND NOT ` + own + `
RETURNING ` + lockColumns

// HandOver implements lock.Store.
func (s *LockStore) HandOver(ctx context.Context, id uuid.UUID, req lock.Request) (lock.Lock, error) {
	var l lock.Lock
	args := []any{id, req.UserID, req.TTL.Milliseconds(), nullable(req.AcquisitionID), req.Holder, req.OkapiRequestID}
	err := s.grantRow(ctx, handOverSQL, args, lockFields(&l)...)
	code, _ := database.SQLState(err)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lock.Lock{}, errNoLock()
	case code == database.LockNotAvailable:
		return lock.Lock{}, lock.ErrHeld()
	case err != nil:
		return lock.Lock{}, toFault("handing a lock over", err)
	}
	return l, nil
}
