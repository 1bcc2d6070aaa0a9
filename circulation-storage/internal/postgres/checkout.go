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
type CommitStore struct{ db *DB }

var _ commit.Store = (*CommitStore)(nil)

// NewCommitStore returns the commits of all tenants in db.
func NewCommitStore(db *DB) *CommitStore { return &CommitStore{db: db} }

// The statements that read, in the order in which they lock. Each one sees what
// was committed when it began, so after waiting for a lock the next ones see what
// its holder did; that is why the loan is looked up last. The clock is read there
// too: in a statement that waits, it would be read before the wait.
//
// The loan is locked so that a repeat is answered only when the loan is durable: the
// row lock makes the COMMIT wait for the disk and for the synchronous standby.
const (
	claimFenceSQL = `SELECT loan_id FROM {schema}.check_out_request WHERE claim_id = $1::uuid AND answer IS NULL FOR SHARE`
	fenceSQL      = `SELECT user_id FROM {schema}.check_out_lock WHERE id = $1::uuid FOR UPDATE`
	// The announcement is not locked: it begins and ends together with a new version.
	settingsFenceSQL = `
SELECT v.version::text, a.on_until IS NOT NULL
  FROM {schema}.lock_settings_version v CROSS JOIN {schema}.check_out_lock_environment a FOR SHARE OF v`
	lockItemSQL = `SELECT jsonb::text FROM {schema}.item WHERE id = $1::uuid FOR UPDATE`
	lookSQL     = `
SELECT clock_timestamp(),
       (SELECT jsonb::text FROM {schema}.loan WHERE id = $1::uuid FOR SHARE),
       EXISTS (SELECT FROM {schema}.loan WHERE item_id = $2::uuid AND is_open)`
)

// The statements that write answer with what is stored then.
const (
	insertLoanSQL = `INSERT INTO {schema}.loan (id, jsonb) VALUES ($1::uuid, $2::jsonb) RETURNING jsonb::text`
	updateLoanSQL = `UPDATE {schema}.loan SET jsonb = $2::jsonb WHERE id = $1::uuid RETURNING jsonb::text`
	updateItemSQL = `UPDATE {schema}.item SET jsonb = $2::jsonb WHERE id = $1::uuid RETURNING jsonb::text`
)

// CheckOut implements commit.Store.
func (s *CommitStore) CheckOut(ctx context.Context, c commit.CheckOut) (schemas.CheckOutResult, commit.Outcome, error) {
	var result schemas.CheckOutResult
	var outcome commit.Outcome
	err := s.db.inTx(ctx, "committing a check-out", func(tx pgx.Tx) error {
		seen, err := lookCheckOut(ctx, tx, c)
		if err != nil {
			return err
		}
		lending, err := c.Decide(ctx, seen)
		if err != nil {
			return err
		}
		if lending.Repeated {
			outcome = commit.Repeated
			result, err = stored(lending)
			return err
		}
		outcome = commit.Committed
		result, err = lend(ctx, tx, c, lending)
		return err
	})
	if err != nil { // also one that came after the writes
		return schemas.CheckOutResult{}, "", err
	}
	return result, outcome, nil
}

// The row lock is WAL of its own, so the COMMIT waits for the disk and for the
// synchronous standby, and with it for the loan that was written before. Without a
// row flushSQL makes it wait: a primary that was cut off from its standby does not
// know what its successor committed, and must not say that there is no loan.
const durableLoanSQL = `SELECT jsonb::text FROM {schema}.loan WHERE id = $1::uuid FOR SHARE`

// DurableLoan implements commit.Store.
func (s *CommitStore) DurableLoan(ctx context.Context, id uuid.UUID) (json.RawMessage, error) {
	var loan *string
	err := s.db.inTx(ctx, "settling a check-out", func(tx pgx.Tx) error {
		var b batch
		b.one(durableLoanSQL, []any{id}, &loan)
		b.one(flushSQL, nil)
		return b.send(ctx, tx)
	})
	if err == nil && loan == nil {
		return nil, fault.New(fault.NotFound, "Not found: there is no loan with id %s", id)
	}
	return raw(loan), err
}

func lookCheckOut(ctx context.Context, tx pgx.Tx, c commit.CheckOut) (commit.Seen, error) {
	var seen commit.Seen
	var b batch
	if c.ClaimID != uuid.Nil {
		b.one(claimFenceSQL, []any{c.ClaimID}, &seen.ClaimedLoan)
	}
	if c.LockID != uuid.Nil {
		b.one(fenceSQL, []any{c.LockID}, &seen.LockUser)
	}
	if c.SettingsVersion != "" {
		b.one(settingsFenceSQL, nil, &seen.SettingsVersion, &seen.EnvironmentOn)
	}
	var item, loan *string
	if c.TitleLevel {
		b.lockTitle(c.ItemID)
	}
	b.one(lockItemSQL, []any{c.ItemID}, &item)
	queue := b.lockQueue(c.ItemID, c.TitleLevel)
	b.one(lookSQL, []any{c.LoanID, c.ItemID}, &seen.Now, &loan, &seen.OnLoan)
	if err := b.send(ctx, tx); err != nil {
		return commit.Seen{}, fmt.Errorf("reading what a check-out changes: %w", err)
	}
	var err error
	if seen.Item, err = decodeStored(item); err != nil {
		return commit.Seen{}, err
	}
	if seen.Loan, err = decodeStored(loan); err != nil {
		return commit.Seen{}, err
	}
	seen.Queue, err = decodeQueue(*queue)
	return seen, err
}

// stored is the answer to a repeat: both records as they are now.
func stored(l commit.Lending) (schemas.CheckOutResult, error) {
	loan, err := json.Marshal(l.Loan)
	if err != nil {
		return schemas.CheckOutResult{}, fmt.Errorf("writing the loan: %w", err)
	}
	item, err := json.Marshal(l.Item)
	if err != nil {
		return schemas.CheckOutResult{}, fmt.Errorf("writing the item: %w", err)
	}
	return schemas.CheckOutResult{Loan: loan, Item: item}, nil
}

func lend(ctx context.Context, tx pgx.Tx, c commit.CheckOut, l commit.Lending) (schemas.CheckOutResult, error) {
	var loan, item *string
	var b batch
	b.write(insertLoanSQL, l.Loan, &loan)
	b.write(updateItemSQL, l.Item, &item)
	b.requests(l.Requests)
	b.session(l.Session)
	b.event(l.Event)
	if err := b.send(ctx, tx); err != nil {
		return schemas.CheckOutResult{}, notWritten("a check-out", err, c.Violation)
	}
	return schemas.CheckOutResult{Loan: raw(loan), Item: raw(item)}, nil
}
