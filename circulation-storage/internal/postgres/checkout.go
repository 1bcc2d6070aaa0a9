package postgres

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// checkOutLoanSQL is the last statement that reads for a check-out. It comes after those
// that wait for rows (see lockRows), so it sees what their holders did, counts it, and reads the
// clock after the wait. It locks the loan, so that a repeat is answered only when the
// loan is durable.
const checkOutLoanSQL = `SELECT clock_timestamp(), (` + shareLoanSQL + `), (` + isGivenUpSQL + `),
       EXISTS (SELECT FROM {schema}.loan WHERE item_id = $2::uuid AND is_open), ` + countOpenLoansSQL

// lendSQL writes a check-out: loan, item, record of the session, event, and the release of the lock in
// $8. It returns whether there was such a lock; NULL is no release. The limits in $9 are for countOverLimitSQL.
// It is an INSERT, so that connections renew their plans as the tables grow.
const lendSQL = `
WITH lent AS (INSERT INTO {schema}.loan (id, jsonb, limits) VALUES ($1::uuid, $2::jsonb, nullif($9::jsonb, '[]'))),
item AS (UPDATE {schema}.item SET jsonb = $4::jsonb WHERE id = $3::uuid),
event AS (INSERT INTO {schema}.outbox (event_type, payload) SELECT '` + commit.ItemCheckedOut + `', $7::jsonb` + toReader + `),
released AS (DELETE FROM {schema}.check_out_lock WHERE id = $8::uuid RETURNING id)
INSERT INTO {schema}.patron_action_session (id, jsonb) VALUES ($5::uuid, $6::jsonb)
RETURNING EXISTS (SELECT FROM released)`

// returnLockSQL releases the lock that a repeat has taken.
const returnLockSQL = `DELETE FROM {schema}.check_out_lock WHERE id = $1::uuid`

// CheckOut implements commit.Store. A repeat is answered with both records as they are now.
func (s *CommitStore) CheckOut(ctx context.Context, c commit.CheckOut) (schemas.CheckOutResult, error) {
	locks := rowLocks{
		checkOutID: c.LoanID, keyLeaseID: c.KeyLeaseID, lockID: c.LockID, settingsVersion: c.SettingsVersion != "",
		itemID: c.ItemID, queue: true, titleLevel: c.TitleLevel,
	}
	var waitedMs float64
	if c.TakeLock != nil {
		locks.takeFor, locks.takeWaitMs = c.UserID, &waitedMs
	}
	return run(ctx, s, operation[schemas.CheckOutResult]{
		kind: commit.CheckingOut, op: "committing a check-out", reads: "what a check-out changes", writes: "a check-out",
		impatient: c.TakeLock != nil, locks: locks, decide: c.Decide,
		read: func(b *batch, seen *commit.Seen) {
			b.query(checkOutLoanSQL, []any{c.LoanID, c.ItemID, c.UserID, b.encode(c.Limits)},
				&seen.Now, (*stored)(&seen.Loan), &seen.GivenUp, &seen.OnLoan, &seen.OpenLoans)
		},
		answer: func(b *batch, change commit.Change, answer *schemas.CheckOutResult) {
			item := change.Item
			if c.StatusOnly {
				item = records.Record{"status": item["status"]}
			}
			answer.Loan, answer.Item = json.RawMessage(b.encode(change.Loan)), json.RawMessage(b.encode(item))
			answer.Repeated, answer.LockWaitMs = change.Repeated, waitedMs
			if change.Repeated && c.TakeLock != nil {
				b.query(returnLockSQL, []any{c.LockID})
			}
		},
		write: func(b *batch, change commit.Change, answer *schemas.CheckOutResult) {
			b.updateRequests(change.Requests)
			var release uuid.UUID
			if c.ReleaseLock {
				release = c.LockID
			}
			b.query(lendSQL, []any{
				change.Loan.ID(), string(answer.Loan), change.Item.ID(), b.encode(change.Item), change.Session.ID(), b.encode(change.Session), b.encode(change.Events[0].Payload),
				nullable(release), b.encode(c.Limits),
			}, &answer.LockReleased)
		},
		ended: func(change commit.Change, answer schemas.CheckOutResult) {
			if c.Unfenced && !change.Repeated {
				s.obs.LentUnfenced()
			}
			if answer.LockReleased && c.TakeLock == nil {
				s.obs.LockReleased(ctx, c.UserID)
			}
		},
	})
}

// DurableLoan implements commit.Store. Without a loan, flushSQL makes the COMMIT wait as
// the row lock does. A primary that was cut off from its standby does not know what its
// successor committed, so it must not deny a loan.
func (s *CommitStore) DurableLoan(ctx context.Context, id uuid.UUID) (json.RawMessage, error) {
	var loan json.RawMessage
	err := s.db.inTx(ctx, "settling a check-out", func(tx pgx.Tx) error {
		loan = nil
		var b batch
		b.query(shareLoanSQL, []any{id}, &loan)
		b.query(flushSQL, nil)
		return b.send(ctx, tx)
	})
	if err == nil && loan == nil {
		return nil, fault.New(fault.NotFound, "Not found: there is no loan with id %s", id)
	}
	return loan, err
}

// A commit locks the loan's id first and looks whether it was given up last, in a statement of its
// own. So its look sees a settlement that it waited for.
const isGivenUpSQL = `SELECT EXISTS (SELECT FROM {schema}.given_up_check_out WHERE id = $1::uuid)`

// The statements that settle a check-out, behind lockCheckOutSQL. Each has the loan's id in $1.
const (
	// A deleted loan was lent. The history has it, with the entry of the deletion at least.
	deletedLoanSQL = `
SELECT h.jsonb->>'loan' FROM {schema}.loan_history h
 WHERE h.loan_id = $1::uuid AND NOT EXISTS (SELECT FROM {schema}.loan WHERE id = $1::uuid)
 ORDER BY h.jsonb->>'operation' = 'I' DESC, h.jsonb->>'createdDate' LIMIT 1`

	itemOfLoanSQL = `SELECT i.jsonb::text FROM {schema}.item i JOIN {schema}.loan l ON l.item_id = i.id WHERE l.id = $1::uuid`

	// A check-out that is settled again is given up for another day.
	giveUpSQL = `
INSERT INTO {schema}.given_up_check_out (id)
SELECT $1::uuid
 WHERE NOT EXISTS (SELECT FROM {schema}.loan WHERE id = $1::uuid)
   AND NOT EXISTS (SELECT FROM {schema}.loan_history WHERE loan_id = $1::uuid)
ON CONFLICT ON CONSTRAINT given_up_check_out_pkey DO UPDATE SET created_date = excluded.created_date`
)

// SettleCheckOut implements commit.Store. The flush makes the COMMIT wait also if nothing was
// written, because a primary that was cut off from its standby does not know what its successor
// committed.
func (s *CommitStore) SettleCheckOut(ctx context.Context, loanID uuid.UUID) (schemas.SettledCheckOut, error) {
	var settled schemas.SettledCheckOut
	err := s.db.inTx(ctx, "settling a check-out", func(tx pgx.Tx) error {
		settled = schemas.SettledCheckOut{}
		var b batch
		b.lockRows(rowLocks{checkOutID: loanID}, new(commit.Seen))
		b.query(shareLoanSQL, []any{loanID}, &settled.Loan)
		b.query(deletedLoanSQL, []any{loanID}, &settled.Loan)
		b.query(itemOfLoanSQL, []any{loanID}, &settled.Item)
		b.query(giveUpSQL, []any{loanID})
		b.query(flushSQL, nil)
		return b.send(ctx, tx)
	})
	if err != nil {
		return schemas.SettledCheckOut{}, err
	}
	settled.GivenUp = settled.Loan == nil
	return settled, nil
}
