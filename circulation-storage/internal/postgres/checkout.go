package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// CommitStore implements commit.Store. A commit takes four round trips: begin,
// read and lock, write, commit.
type CommitStore struct {
	db    *DB
	facts *groups[schemas.CheckOutSubjects, factsRow]
}

// NewCommitStore returns the commits of all tenants in db.
func NewCommitStore(db *DB) *CommitStore {
	return &CommitStore{db: db, facts: &groups[schemas.CheckOutSubjects, factsRow]{Pool: db.conns.Ordinary, Send: sendFacts, LeaveEarly: true}}
}

// checkOutLoanSQL is the last statement that reads for a check-out. It comes after those
// that wait for rows (see lockRows), so it sees what their holders did, and reads the
// clock after the wait. It locks the loan, so that a repeat is answered only when the
// loan is durable.
const checkOutLoanSQL = `SELECT clock_timestamp(), (` + shareLoanSQL + `),
       EXISTS (SELECT FROM {schema}.loan WHERE item_id = $2::uuid AND is_open)`

// The statements that write return what is stored then.
const (
	insertLoanSQL = `INSERT INTO {schema}.loan (id, jsonb) VALUES ($1::uuid, $2::jsonb) RETURNING jsonb::text`
	updateLoanSQL = `UPDATE {schema}.loan SET jsonb = $2::jsonb WHERE id = $1::uuid RETURNING jsonb::text`
	// The transaction has locked the row, so it is there.
	releaseFenceSQL = `DELETE FROM {schema}.check_out_lock WHERE id = $1::uuid RETURNING true`
	updateItemSQL   = `UPDATE {schema}.item SET jsonb = $2::jsonb WHERE id = $1::uuid RETURNING jsonb::text`
)

// ended is the answer to a commit, and how it ended.
type ended[R any] struct {
	result  R
	outcome commit.Outcome
}

// CheckOut implements commit.Store.
func (s *CommitStore) CheckOut(ctx context.Context, c commit.CheckOut) (schemas.CheckOutResult, commit.Outcome, error) {
	done, err := runDecision(ctx, s.db, "committing a check-out", c, readCheckOut, writeCheckOut)
	return done.result, done.outcome, err
}

func readCheckOut(ctx context.Context, tx pgx.Tx, c commit.CheckOut) (commit.Seen, error) {
	var seen commit.Seen
	var b batch
	rows := b.lockRows(rowLocks{
		keyLeaseID: c.KeyLeaseID, lockID: c.LockID, settingsVersion: c.SettingsVersion != "",
		itemID: c.ItemID, queue: true, titleLevel: c.TitleLevel,
	})
	if len(c.Limits) > 0 {
		b.query(countOpenLoansSQL, []any{c.UserID, b.encode(c.Limits)}, &seen.OpenLoans)
	}
	b.query(checkOutLoanSQL, []any{c.LoanID, c.ItemID}, &seen.Now, &rows.loan, &seen.OnLoan)
	if err := b.send(ctx, tx); err != nil {
		return commit.Seen{}, fmt.Errorf("reading what a check-out changes: %w", err)
	}
	seen.LeasedLoan, seen.LockUser = rows.leasedLoan, rows.lockUser
	seen.SettingsVersion, seen.EnvironmentOn = rows.settingsVersion, rows.environmentOn
	var err error
	seen.Item, seen.Loan, seen.Queue, err = rows.decode()
	return seen, err
}

// writeCheckOut writes nothing for a repeat, and returns both records as they are now.
func writeCheckOut(ctx context.Context, tx pgx.Tx, c commit.CheckOut, l commit.Lending) (ended[schemas.CheckOutResult], error) {
	var result schemas.CheckOutResult
	var b batch
	if l.Repeated {
		result.Loan, result.Item = json.RawMessage(b.encode(l.Loan)), json.RawMessage(b.encode(l.Item))
		return ended[schemas.CheckOutResult]{result, commit.Repeated}, b.err
	}
	b.storeRecord(insertLoanSQL, l.Loan, &result.Loan)
	b.storeRecord(updateItemSQL, l.Item, &result.Item)
	b.updateRequests(ctx, l.Requests)
	b.addSession(l.Session)
	b.addEvent(l.Event)
	if c.ReleaseLock && c.LockID != uuid.Nil {
		b.query(releaseFenceSQL, []any{c.LockID}, &result.LockReleased)
	}
	if err := b.send(ctx, tx); err != nil {
		return ended[schemas.CheckOutResult]{}, explainWriteError("a check-out", err, c.Violation)
	}
	return ended[schemas.CheckOutResult]{result, commit.Committed}, nil
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
