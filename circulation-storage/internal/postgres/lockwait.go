package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/database"
)

var peekSQL = `
SELECT ` + forRequest + `, l.id, l.request_id, clock_timestamp() - l.creation_date
  FROM {schema}.check_out_lock l WHERE l.user_id = $1::uuid`

// Peek implements lock.Store.
func (s *LockStore) Peek(ctx context.Context, req lock.Request) (lock.Peek, error) {
	var seen lock.Peek
	err := s.db.readRow(ctx, s.db.lending, "reading a lock", peekSQL, []any{req.UserID, req.TTL.Milliseconds()},
		&seen.Free, &seen.LockID, (*optionalID)(&seen.RequestID), &seen.Age)
	if seen.Free || errors.Is(err, pgx.ErrNoRows) {
		return lock.Peek{Free: true}, nil
	}
	return seen, err
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
	l, err := s.handOver(ctx, id, req)
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

func (s *LockStore) handOver(ctx context.Context, id uuid.UUID, req lock.Request) (lock.Lock, error) {
	conn, err := s.db.lending.Acquire(ctx)
	if err != nil {
		return lock.Lock{}, fmt.Errorf("getting a connection: %w", err)
	}
	defer conn.Release()
	// From here on the end of the caller must not lose the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acquireTimeout)
	defer cancel()
	var l lock.Lock
	args := []any{id, req.UserID, req.TTL.Milliseconds(), nullable(req.RequestID), req.Holder, req.OkapiRequestID}
	err = scanRow(ctx, conn, handOverSQL, args, lockFields(&l)...)
	return l, err
}
