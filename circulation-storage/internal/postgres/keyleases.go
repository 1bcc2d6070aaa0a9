package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/keylease"
	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

// KeyLeaseStore implements keylease.Store on the table check_out_request.
type KeyLeaseStore struct{ db *DB }

// NewKeyLeaseStore returns the Idempotency-Keys of all tenants in db.
func NewKeyLeaseStore(db *DB) *KeyLeaseStore { return &KeyLeaseStore{db: db} }

// forgotten is when a key r equals none: a day after its last use. A clock that was set
// back makes it last that much longer, but not for ever. No index can be searched by
// clock_timestamp().
const forgotten = `r.claimed_date NOT BETWEEN statement_timestamp() - interval '1 day' AND statement_timestamp() + interval '1 day'`

// leaseEnded is when the lease on r equals none. Its lease is over, or its date lies so
// far ahead that the clock was set back.
const leaseEnded = `(r.claimed_date + r.lease_ms * interval '1 ms' < clock_timestamp()
    OR r.claimed_date > clock_timestamp() + interval '5 s')`

// leasedGivenUp is when the loan of a key r can no longer be committed, so that the key needs another
// one.
const leasedGivenUp = `EXISTS (SELECT FROM {schema}.given_up_check_out g WHERE g.id = r.loan_id)`

// One statement decides, so no two callers can both read and then both write. It
// waits for a commit that uses the lease, at most 250 ms.
//
// The lease need not be durable. A commit that uses it makes it durable, and the holder
// of one that a crash lost commits nothing.
const (
	leaseKeySQL = `
WITH settings AS MATERIALIZED (
    SELECT set_config('lock_timeout', '250ms', true), ` + notDurable + `)
INSERT INTO {schema}.check_out_request AS r (key, body_hash, claim_id, lease_ms, holder)
SELECT $1::text, $2::bytea, $3::uuid, $4::integer, nullif($5::text, '') FROM settings
ON CONFLICT ON CONSTRAINT check_out_request_pkey DO UPDATE
   SET loan_id = CASE WHEN r.body_hash <> excluded.body_hash OR ` + forgotten + ` OR ` + leasedGivenUp + `
                      THEN excluded.loan_id ELSE r.loan_id END,
       body_hash = excluded.body_hash, claim_id = excluded.claim_id, claimed_date = clock_timestamp(),
       lease_ms = excluded.lease_ms, holder = excluded.holder, answer = NULL
 WHERE ` + forgotten + `
    OR (r.body_hash = excluded.body_hash AND r.answer IS NULL AND (r.claim_id = excluded.claim_id OR ` + leaseEnded + `))
RETURNING loan_id, xmax <> 0`

	readKeySQL = `
SELECT loan_id, body_hash = $2::bytea, ` + leaseEnded + `, answer
  FROM {schema}.check_out_request r WHERE key = $1::text`

	renewLeaseSQL = `
UPDATE {schema}.check_out_request SET lease_ms = $2::integer, claimed_date = clock_timestamp()
 WHERE claim_id = $1::uuid AND answer IS NULL RETURNING ` + notDurable

	finishLeaseSQL = `
UPDATE {schema}.check_out_request SET answer = $2::text, claimed_date = clock_timestamp()
 WHERE claim_id = $1::uuid AND (answer IS NULL OR answer = $2::text)`

	sweepKeysSQL = `
WITH old AS (SELECT r.key FROM {schema}.check_out_request r WHERE ` + forgotten + ` LIMIT $1::bigint` + skipLocked + `)
DELETE FROM {schema}.check_out_request r USING old WHERE r.key = old.key
RETURNING ` + notDurable
)

// leaseIDKey is the unique constraint on lease ids.
const leaseIDKey = "check_out_request_claim_id_key"

// Lease implements keylease.Store.
func (s *KeyLeaseStore) Lease(ctx context.Context, req keylease.Request) (keylease.Lease, error) {
	const op = "leasing an idempotency key"
	var c keylease.Lease
	args := []any{req.Key, req.BodyHash[:], req.LeaseID, req.Duration.Milliseconds(), req.Holder}
	err := scanRow(ctx, s.db.conns.Urgent, leaseKeySQL, args, &c.LoanID, &c.Taken)
	code, constraint := database.SQLState(err)
	switch {
	case code == database.LockNotAvailable:
		return keylease.Lease{}, keylease.ErrRunning()
	case constraint == leaseIDKey:
		return keylease.Lease{}, fault.Wrap(err, fault.Invalid, "claimId is already that of another key")
	case !errors.Is(err, pgx.ErrNoRows):
		return c, toFault(op, err)
	}
	k, err := s.readKey(ctx, op, req)
	switch {
	case err != nil:
		return keylease.Lease{}, err
	case k.open: // since the lease
		return keylease.Lease{}, keylease.ErrRunning()
	case !k.same:
		return keylease.Lease{}, fault.New(fault.KeyReused, "This key was used for a request with another body")
	case k.answer == nil:
		return keylease.Lease{}, keylease.ErrRunning()
	}
	return keylease.Lease{LoanID: k.loanID, Taken: true, Answer: k.answer}, nil
}

// key is what a plain read sees.
type key struct {
	loanID uuid.UUID
	same   bool // it is that of the request's body
	open   bool // a lease would be granted
	answer json.RawMessage
}

func (s *KeyLeaseStore) readKey(ctx context.Context, op string, req keylease.Request) (key, error) {
	var k key
	var isEnded bool
	err := s.db.readRow(ctx, s.db.conns.Urgent, op, readKeySQL, []any{req.Key, req.BodyHash[:]},
		&k.loanID, &k.same, &isEnded, &k.answer)
	if errors.Is(err, pgx.ErrNoRows) {
		return key{open: true}, nil
	}
	k.open = k.same && isEnded && k.answer == nil
	return k, err
}

// Running implements keylease.Store.
func (s *KeyLeaseStore) Running(ctx context.Context, req keylease.Request) (bool, error) {
	k, err := s.readKey(ctx, "reading an idempotency key", req)
	return !k.open && k.same && k.answer == nil, err
}

// Renew implements keylease.Store.
func (s *KeyLeaseStore) Renew(ctx context.Context, leaseID uuid.UUID, lease time.Duration) error {
	return s.updateLease(ctx, "renewing a lease", renewLeaseSQL, leaseID, lease.Milliseconds())
}

// Finish implements keylease.Store.
func (s *KeyLeaseStore) Finish(ctx context.Context, leaseID uuid.UUID, answer json.RawMessage) error {
	return s.updateLease(ctx, "keeping an answer", finishLeaseSQL, leaseID, string(answer))
}

func (s *KeyLeaseStore) updateLease(ctx context.Context, op, statement string, args ...any) error {
	n, err := s.db.exec(ctx, s.db.conns.Urgent, op, statement, args...)
	if err == nil && n == 0 {
		return fault.New(fault.KeyLeaseLost, "The claim was taken over, or the request is finished")
	}
	return err
}

// Sweep deletes at most limit expired keys, and returns how many. It skips keys in use.
func (s *KeyLeaseStore) Sweep(ctx context.Context, limit int) (int, error) {
	return s.db.sweep(ctx, "sweeping idempotency keys", sweepKeysSQL, limit)
}
