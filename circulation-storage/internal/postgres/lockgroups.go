package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/database"
)

// The statements of groups insert locks, or delete them, and never replace one. All take
// rows in the order of user_id, or of id, so that two instances do not wait for each other
// in a circle. A member that a statement cannot serve within database.GroupLockTimeout runs alone,
// so that a commit that uses one patron's lock does not stop the others.

type (
	acquire = member[lock.Request, lock.Lock]
	release = member[uuid.UUID, lock.Lock]
)

// insertLockSQL is insertLocksSQL for one call, in one statement.
const insertLockSQL = `
WITH settings AS MATERIALIZED (SELECT ` + database.SetGroupLockTimeout + `, ` + notDurable + `)
INSERT INTO {schema}.check_out_lock AS l (id, user_id, creation_date, ttl_ms, request_id, holder, okapi_request_id)
SELECT gen_random_uuid(), $1::uuid, clock_timestamp(), $2::bigint, $3::uuid, nullif($4::text, ''), nullif($5::text, '') FROM settings
ON CONFLICT ON CONSTRAINT check_out_lock_user_id_key DO NOTHING
RETURNING l.user_id, l.id, l.creation_date`

const insertLocksSQL = `
INSERT INTO {schema}.check_out_lock AS l (id, user_id, creation_date, ttl_ms, request_id, holder, okapi_request_id)
SELECT gen_random_uuid(), r.user_id, clock_timestamp(), r.ttl_ms, r.request_id, nullif(r.holder, ''), nullif(r.okapi_request_id, '')
  FROM unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::text[]) AS r (user_id, ttl_ms, request_id, holder, okapi_request_id)
 ORDER BY r.user_id
ON CONFLICT ON CONSTRAINT check_out_lock_user_id_key DO NOTHING
RETURNING l.user_id, l.id, l.creation_date`

// sendAcquires grants the locks of patrons that have none. A plain read then refuses those
// whose lock is held. The others get database.ErrRunAlone, for acquireSQL to decide: they may renew
// or take over, or the lock was released meanwhile.
func sendAcquires(ctx context.Context, conn *pgxpool.Conn, group []*acquire) error {
	insert := insertLocks
	if len(group) == 1 {
		insert = insertLock
	}
	if err := insert(ctx, conn, group); err != nil {
		return err
	}
	var refused []*acquire
	for _, m := range group {
		if m.Err != nil {
			refused = append(refused, m)
		}
	}
	if len(refused) > 0 && judgeRefused(ctx, conn, refused) != nil {
		database.AnswerAll(refused, database.ErrRunAlone) // they got nothing, and the others have their locks
	}
	return nil
}

// insertLock is insertLocks for a group of one.
func insertLock(ctx context.Context, conn *pgxpool.Conn, group []*acquire) error {
	r := group[0].Asked
	var l lock.Lock
	args := []any{r.UserID, r.TTL.Milliseconds(), nullable(r.AcquisitionID), r.Holder, r.OkapiRequestID}
	err := scanRow(ctx, conn, insertLockSQL, args, insertedFields(&l)...)
	if err == nil {
		grant(group[0], l)
	}
	return explainNoRow(err, nil)
}

// insertLocks grants the members their locks. It tries the first of several for one patron.
func insertLocks(ctx context.Context, conn *pgxpool.Conn, group []*acquire) error {
	first := make(map[uuid.UUID]*acquire, len(group))
	tried := make([]*acquire, 0, len(group))
	for _, m := range group {
		if first[m.Asked.UserID] == nil {
			first[m.Asked.UserID] = m
			tried = append(tried, m)
		}
	}
	holders, calls := make([]string, len(tried)), make([]string, len(tried))
	for i, m := range tried {
		holders[i], calls[i] = m.Asked.Holder, m.Asked.OkapiRequestID
	}
	users, ttls, acquisitions := acquireArrays(tried)
	return queryGroup(ctx, conn, insertLocksSQL, []any{users, ttls, acquisitions, holders, calls}, func(rows pgx.Rows) error {
		var l lock.Lock
		_, err := pgx.ForEachRow(rows, insertedFields(&l), func() error {
			grant(first[l.UserID], l)
			return nil
		})
		return err
	})
}

// insertedFields are what the statements that insert return.
func insertedFields(l *lock.Lock) []any {
	return []any{&l.UserID, &l.ID, (*database.UTCTime)(&l.CreatedAt)}
}

// grant answers a member with the lock that was inserted for it. The other values are those
// of the request; the lock is new, so it is neither old nor outdated.
func grant(m *acquire, inserted lock.Lock) {
	r := m.Asked
	m.Answer = lock.Lock{
		ID: inserted.ID, UserID: r.UserID, CreatedAt: inserted.CreatedAt, TTL: r.TTL.Truncate(time.Millisecond),
		AcquisitionID: r.AcquisitionID, Holder: r.Holder, OkapiRequestID: r.OkapiRequestID,
	}
	m.Err = nil
}

// judgeRefused answers the members that got no lock.
func judgeRefused(ctx context.Context, conn *pgxpool.Conn, refused []*acquire) error {
	return peekLocks(ctx, conn, refused, func(m *acquire, seen lock.Peek) {
		m.Err = lock.ErrHeld()
		if seen.Free || seen.AcquisitionID != uuid.Nil && seen.AcquisitionID == m.Asked.AcquisitionID {
			m.Err = database.ErrRunAlone
		}
	})
}

// acquireArrays returns patrons, times to live and acquisition ids as arrays, which have a type
// without a prepared statement too.
func acquireArrays[A any](members []*member[lock.Request, A]) (users []pgtype.UUID, ttls []int64, acquisitions []pgtype.UUID) {
	for _, m := range members {
		users = append(users, pgtype.UUID{Bytes: m.Asked.UserID, Valid: true})
		ttls = append(ttls, m.Asked.TTL.Milliseconds())
		acquisitions = append(acquisitions, pgtype.UUID{Bytes: m.Asked.AcquisitionID, Valid: m.Asked.AcquisitionID != uuid.Nil})
	}
	return users, ttls, acquisitions
}

// deleteLockSQL is deleteLocksSQL for one call, in one statement. It sets the time-out when
// it has found the row, before it waits for it.
var deleteLockSQL = `
DELETE FROM {schema}.check_out_lock l WHERE l.id = $1::uuid AND ` + database.SetGroupLockTimeout + ` <> ''
RETURNING ` + lockColumns + `, ` + notDurable

// An index scan for an array visits its values in order.
var deleteLocksSQL = `DELETE FROM {schema}.check_out_lock l WHERE l.id = ANY ($1::uuid[]) RETURNING ` + lockColumns

// sendReleases deletes the locks and returns them as they were. Of several releases of one
// lock, the first gets it. If one would wait for a commit, all run releaseSQL alone.
func sendReleases(ctx context.Context, conn *pgxpool.Conn, group []*release) error {
	if len(group) == 1 {
		m := group[0]
		var setting string
		m.Err = scanRow(ctx, conn, deleteLockSQL, []any{m.Asked}, lockFields(&m.Answer, &setting)...)
		if errors.Is(m.Err, pgx.ErrNoRows) {
			m.Err = errNoLock()
			return nil
		}
		return m.Err
	}
	first := make(map[uuid.UUID]*release, len(group))
	ids := make([]pgtype.UUID, 0, len(group))
	for _, m := range group {
		if first[m.Asked] == nil {
			first[m.Asked] = m
			ids = append(ids, pgtype.UUID{Bytes: m.Asked, Valid: true})
		}
	}
	err := queryGroup(ctx, conn, deleteLocksSQL, []any{ids}, func(rows pgx.Rows) error {
		var l lock.Lock
		_, err := pgx.ForEachRow(rows, lockFields(&l), func() error {
			first[l.ID].Answer, first[l.ID].Err = l, nil
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, m := range group {
		if m.Err != nil {
			m.Err = errNoLock()
		}
	}
	return nil
}
