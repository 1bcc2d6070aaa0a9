package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// tableMark stands in a statement for a record type's table in the tenant's schema.
const tableMark = "{table}"

// nameSchema puts the schema of ctx's tenant into a statement that runs on a connection. Fault:
// Malformed without a tenant, as for a request without one.
func nameSchema(ctx context.Context, on database.Querier, statement string) (string, error) {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return "", err
	}
	return database.NameSchemaOn(on, SchemaName(id), statement), nil
}

// nameTable puts a table of the tenant's schema into a statement.
func nameTable(statement, table string) string {
	return strings.ReplaceAll(statement, tableMark, database.SchemaMark+"."+pgx.Identifier{table}.Sanitize())
}

// The next three functions run one statement in the schema of ctx's tenant. They return
// PostgreSQL's errors as they are, because runTx judges those of a transaction.

// runStatement returns how many rows the statement changed.
func runStatement(ctx context.Context, on database.Querier, statement string, args ...any) (int, error) {
	statement, err := nameSchema(ctx, on, statement)
	if err != nil {
		return 0, err
	}
	return database.Exec(ctx, on, "", statement, args...)
}

// scanRow reads the statement's only row into dest. It returns pgx.ErrNoRows without one.
func scanRow(ctx context.Context, on database.Querier, statement string, args []any, dest ...any) error {
	statement, err := nameSchema(ctx, on, statement)
	if err != nil {
		return err
	}
	return database.ScanRow(ctx, on, "", statement, args, dest)
}

// collectRows returns what scan makes of each row.
func collectRows[T any](ctx context.Context, on database.Querier, statement string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	statement, err := nameSchema(ctx, on, statement)
	if err != nil {
		return nil, err
	}
	return database.CollectRows(ctx, on, "", statement, args, scan)
}

// The methods of DB run one statement outside a transaction, on the given pool, and
// turn errors into faults; op says what was being done. They run again after a deadlock,
// as an upgrade of the tenant may lock its tables in another order. Those that only read
// run again on a fresh connection if the first was lost.

// exec returns how many rows the statement changed.
func (db *DB) exec(ctx context.Context, pool *pgxpool.Pool, op, statement string, args ...any) (n int, err error) {
	err = db.repeat(ctx, op, func() (err error) {
		n, err = runStatement(ctx, pool, statement, args...)
		return err
	})
	return n, err
}

// writeRow runs a statement that writes, and reads its only row into dest. The fault
// wraps pgx.ErrNoRows without one.
func (db *DB) writeRow(ctx context.Context, pool *pgxpool.Pool, op, statement string, args []any, dest ...any) error {
	return db.repeat(ctx, op, func() error { return scanRow(ctx, pool, statement, args, dest...) })
}

// read runs f, which reads in one statement.
func (db *DB) read(ctx context.Context, op string, f func() error) error {
	return db.repeat(ctx, op, func() error { return db.conns.Read(ctx, f) })
}

// readRow reads the statement's only row into dest. The fault wraps pgx.ErrNoRows
// without one.
func (db *DB) readRow(ctx context.Context, pool *pgxpool.Pool, op, statement string, args []any, dest ...any) error {
	return db.read(ctx, op, func() error { return scanRow(ctx, pool, statement, args, dest...) })
}

// explainNoRow returns missing, which may be nil, in place of the error of a statement that found no row.
// Other errors pass.
func explainNoRow(err, missing error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return missing
	}
	return err
}

// lookUpSQL goes before a statement that finds rows by indexes, whatever the parameters. Its plan is
// made once a connection. By its own choice PostgreSQL makes five plans before, and each tenant has
// statements of its own: with many tenants that takes longer than to run them.
var lookUpSQL = database.Bounds{PlansOnce: true}.Batched()

// lookUp is scanRow for such a statement.
func lookUp(ctx context.Context, on database.Querier, statement string, args []any, dest ...any) error {
	statement, err := nameSchema(ctx, on, statement)
	if err != nil {
		return err
	}
	return database.ScanRow(ctx, on, lookUpSQL, statement, args, dest)
}

// lookUpRow is readRow for such a statement.
func (db *DB) lookUpRow(ctx context.Context, pool *pgxpool.Pool, op, statement string, args []any, dest ...any) error {
	return db.read(ctx, op, func() error { return lookUp(ctx, pool, statement, args, dest...) })
}

// seldom goes before the parameters of a statement that runs once a minute or less for each tenant.
// PostgreSQL keeps it no longer than it runs. Else each connection would have those of all tenants.
const seldom = pgx.QueryExecModeExec

// seldomTx waits briefly for tables that an upgrade or a restore of the tenant locks. Else the sweeps and
// counts of that tenant would keep the connections that calls of all tenants need.
var seldomTx = database.Bounds{Idle: shortTx.Idle, Lock: impatientWait}

// sweep is exec for such a statement.
func (db *DB) sweep(ctx context.Context, op, statement string, args ...any) (n int, err error) {
	err = db.runTx(ctx, db.conns.Ordinary, seldomTx, op, func(tx pgx.Tx) (err error) {
		n, err = runStatement(ctx, tx, statement, append([]any{seldom}, args...)...)
		return err
	})
	return n, err
}

// count is readRow for such a statement.
func (db *DB) count(ctx context.Context, op, statement string, args []any, dest ...any) error {
	return db.runTx(ctx, db.conns.Ordinary, seldomTx, op, func(tx pgx.Tx) error {
		return scanRow(ctx, tx, statement, append([]any{seldom}, args...), dest...)
	})
}

// readRows returns what scan makes of each row.
func readRows[T any](ctx context.Context, db *DB, op, statement string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	var found []T
	err := db.read(ctx, op, func() (err error) {
		found, err = collectRows(ctx, db.conns.Ordinary, statement, args, scan)
		return err
	})
	return found, err
}

// readPage returns a page and the total, which is the first column of each row. An
// empty page is one row that is NULL in all columns but the first.
func readPage[T any](
	ctx context.Context, db *DB, op, statement string, args []any, scan func(row pgx.Row, total *int) (T, error),
) ([]T, int, error) {
	var total int
	empty := false
	page, err := readRows(ctx, db, op, statement, args, func(row pgx.CollectableRow) (element T, err error) {
		columns := row.RawValues()
		if empty = columns[1] == nil; empty {
			return element, row.Scan(append([]any{&total}, make([]any, len(columns)-1)...)...)
		}
		return scan(row, &total)
	})
	if empty {
		page = nil
	}
	return page, total, err
}

// nullable is SQL NULL for no id.
func nullable(id uuid.UUID) uuid.NullUUID {
	return uuid.NullUUID{UUID: id, Valid: id != uuid.Nil}
}

// optionalID reads NULL as uuid.Nil.
type optionalID uuid.UUID

// ScanUUID implements pgtype.UUIDScanner.
func (id *optionalID) ScanUUID(v pgtype.UUID) error {
	*id = v.Bytes
	return nil
}

// folioTime reads a timestamptz as answers have it, and NULL as no text.
type folioTime string

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (t *folioTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	*t = ""
	if v.Valid {
		*t = folioTime(v.Time.UTC().Format(schemas.FolioTime))
	}
	return nil
}

// millis reads a number of milliseconds.
type millis time.Duration

// ScanInt64 implements pgtype.Int64Scanner.
func (d *millis) ScanInt64(v pgtype.Int8) error {
	*d = millis(time.Duration(v.Int64) * time.Millisecond)
	return nil
}

// commitAttempts is how often a transaction runs at most.
const commitAttempts = 4

// In a transaction, a statement may run until the caller's deadline.
var (
	// shortTx is for locks, loans, items, requests and settings.
	shortTx = database.Bounds{Idle: 3 * time.Second, Lock: 5 * time.Second}
	// urgentTx is for transactions whose statements find rows by indexes, whatever the parameters.
	// By its own choice PostgreSQL plans the recount for nearly every check-out, which takes longer
	// than to count.
	urgentTx = database.Bounds{Idle: shortTx.Idle, Lock: shortTx.Lock, PlansOnce: true}
	// forceTx is for an operator who waits for the answer: longer than a frozen commit
	// lives, shorter than 5 s.
	forceTx = database.Bounds{Idle: 3 * time.Second, Lock: 4 * time.Second}
	// longTx is for creating and dropping schemas.
	longTx = database.Bounds{Idle: time.Minute, Lock: 5 * time.Minute}
)

// inTx runs fn in one transaction on the urgent connections. It commits if fn
// returns nil, and rolls back otherwise, even if ctx is already cancelled. See
// database.DB.Repeat for the errors after which it runs fn again. So fn must not keep state
// across calls.
//
// fn must not call another service: the transaction would hold its row locks until that
// service answers.
//
// Fault: Timeout if the COMMIT got no answer in time. The transaction may be committed
// then.
func (db *DB) inTx(ctx context.Context, op string, fn func(pgx.Tx) error) error {
	return db.runTx(ctx, db.conns.Urgent, urgentTx, op, fn)
}

func (db *DB) runTx(ctx context.Context, pool *pgxpool.Pool, b database.Bounds, op string, fn func(pgx.Tx) error) error {
	return db.repeat(ctx, op, func() error { return db.conns.InTx(ctx, pool, b, fn) })
}

// repeat runs f, which is one transaction, again after the errors of database.DB.Repeat.
func (db *DB) repeat(ctx context.Context, op string, f func() error) error {
	return toFault(op, db.conns.Repeat(ctx, commitAttempts, op, f))
}

// groups are the calls of one kind, by tenant. Members wait for their answers, so that they
// can give back what they got.
type (
	groups[Q, A any] = database.Groups[okapi.Tenant, Q, A]
	member[Q, A any] = database.Member[Q, A]
)

// runInGroup returns the answer to one call of ctx's tenant.
func runInGroup[Q, A any](ctx context.Context, g *groups[Q, A], asked Q) (A, error) {
	tenant, err := okapi.TenantFrom(ctx)
	if err != nil {
		var none A
		return none, err
	}
	return g.Run(ctx, tenant, asked)
}

// groupSettingsSQL goes before the statement of a group. Its plan uses the index and is made once a
// connection: a plan made for the almost empty table would scan it for ever.
var groupSettingsSQL = database.Bounds{
	Lock: database.GroupLockTimeout, Statement: 5 * time.Second, NotDurable: true, PlansOnce: true, OnlyIndexes: true,
}.Batched()

// letReadAlone lets each member read alone after the group's read failed with err, because a read may run
// twice. It returns err if the group's time is up: the server is silent, and a second read would wait again.
func letReadAlone[Q, A any](ctx context.Context, group []*member[Q, A], err error) error {
	if ctx.Err() != nil {
		return err
	}
	database.AnswerAll(group, database.ErrRunAlone)
	return nil
}

// queryGroup runs one statement for a group, in one round trip and one transaction. It
// returns after the commit. scan reads the rows.
func queryGroup(ctx context.Context, conn *pgxpool.Conn, statement string, args []any, scan func(pgx.Rows) error) error {
	statement, err := nameSchema(ctx, conn, statement)
	if err != nil {
		return err
	}
	return database.Query(ctx, conn, groupSettingsSQL, statement, args, scan)
}
