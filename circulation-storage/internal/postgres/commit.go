package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/span"
)

// CommitStore implements commit.Store. A commit takes two round trips: lock and read, and write.
type CommitStore struct {
	db    *DB
	obs   commit.Observer
	facts *groups[schemas.CheckOutSubjects, factsRow]
}

var _ commit.Store = (*CommitStore)(nil)

// NewCommitStore returns the commits of all tenants in db. obs receives their ends.
func NewCommitStore(db *DB, obs commit.Observer) *CommitStore {
	facts := &groups[schemas.CheckOutSubjects, factsRow]{Pool: db.conns.Urgent, Send: sendFacts, LeaveEarly: true}
	return &CommitStore{db: db, obs: obs, facts: facts}
}

// operation is one commit, that answers an R. Each part runs again with the transaction.
type operation[R any] struct {
	kind   commit.Kind
	op     string // what is being done, for errors
	reads  string // what is read, for errors
	writes string // what is written, for errors

	// impatient makes a wait for rows LockHeld soon, because the caller has another way.
	impatient bool

	locks rowLocks
	// read adds the statements that read after the locks, the last row with the clock.
	read   func(b *batch, seen *commit.Seen)
	decide func(ctx context.Context, seen commit.Seen) (commit.Change, error)
	// answer fills the answer, also for a repeat. It is nil if the statements of write do.
	answer func(b *batch, change commit.Change, answer *R)
	// write adds the statements that write the change. They may fill the answer. A repeat writes nothing.
	write func(b *batch, change commit.Change, answer *R)
	// ended is called after the commit. It may be nil.
	ended func(change commit.Change, answer R)
}

// impatientWait is how long an impatient operation waits for a row: as long as an acquire does.
const impatientWait = 250 * time.Millisecond

// run commits o in a transaction of urgentTx, and reports its end.
func run[R any](ctx context.Context, s *CommitStore, o operation[R]) (R, error) {
	start := time.Now()
	bounds := urgentTx
	if o.impatient {
		bounds.Lock = impatientWait
	}
	ctx, end := span.Start(ctx, o.op)
	change, answer, err := o.runIn(ctx, s.db, s.db.conns.Urgent, bounds)
	end(&err)
	if o.impatient && fault.Is(err, fault.InUse) {
		err = fault.Wrap(err, fault.LockHeld, "Another request has what the commit locks")
	}
	s.obs.Ended(o.kind, commit.EndOf(o.kind, change, err), time.Since(start))
	if err != nil { // also one that came after the writes
		var none R
		return none, err
	}
	if o.ended != nil {
		o.ended(change, answer)
	}
	return answer, nil
}

// runIn runs o in one transaction of two round trips, and again after the errors of DB.repeat.
func (o operation[R]) runIn(ctx context.Context, db *DB, pool *pgxpool.Pool, b database.Bounds) (change commit.Change, answer R, err error) {
	err = db.repeat(ctx, o.op, func() error {
		change, answer, err = o.try(ctx, db.conns, pool, b)
		return err
	})
	return change, answer, err
}

// try locks and reads in one batch, decides, and writes in another.
func (o operation[R]) try(ctx context.Context, db *database.DB, pool *pgxpool.Pool, b database.Bounds) (change commit.Change, answer R, err error) {
	var reads, writes batch
	var seen commit.Seen
	read, decided := false, false
	reads.lockRows(o.locks, &seen)
	o.read(&reads, &seen)
	begin := func(on database.Querier, queue *pgx.Batch) error {
		seen = commit.Seen{} // a lost batch that runs again may have read a lock that is gone since
		return reads.fill(ctx)(on, queue)
	}
	err = db.InTwoBatches(ctx, pool, b, begin, func() (database.Fill, error) {
		read = true
		if change, err = o.decide(ctx, seen); err != nil {
			return nil, err
		}
		decided = true
		if o.answer != nil {
			o.answer(&writes, change, &answer)
		}
		if !change.Repeated {
			o.write(&writes, change, &answer)
		}
		return writes.fill(ctx), nil
	})
	switch {
	case !read && err != nil:
		err = fmt.Errorf("reading %s: %w", o.reads, err)
	case decided:
		err = o.explain(err)
	}
	return change, answer, err
}

// explain returns why the writes failed, nil if they did not.
func (o operation[R]) explain(err error) error {
	if err == nil {
		return nil
	}
	if taken := explainTaken(err); taken != nil {
		return taken
	}
	return fmt.Errorf("writing %s: %w", o.writes, explainDangling(err))
}

// takenKeys are the position of an open request in the queue of its item, the item of an open loan, and the
// ids that callers choose.
var takenKeys = []string{
	"request_item_id_position_key", "loan_open_item_id_key",
	"loan_pkey", "request_pkey", "request_change_pkey", "loan_change_pkey", "check_in_pkey",
}

// explainTaken returns the fault for what another transaction has taken since this one read: a position, an
// item or an id. This transaction runs again, and then sees what the other wrote. It returns nil for any
// other error.
func explainTaken(err error) error {
	if code, constraint := database.SQLState(err); code != database.UniqueViolation || !slices.Contains(takenKeys, constraint) {
		return nil
	}
	return fault.Wrap(fmt.Errorf("%w: %w", database.ErrRunAgain, err), fault.RequestChanged,
		"The queue of requests is being changed by others: read it again")
}
