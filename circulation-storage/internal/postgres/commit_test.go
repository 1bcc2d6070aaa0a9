package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// harness is a tenant of its own, with what lends and takes back there.
type harness struct {
	t        *testing.T
	id       okapi.Tenant
	db       *postgres.DB
	commits  *postgres.CommitStore
	locks    *postgres.LockStore
	settings *postgres.LockSettingsStore
}

func newHarness(t *testing.T) harness {
	db, id := pgtest.New(t)
	l := harness{t: t, id: id, db: db}.on(db)
	l.exec(`UPDATE {schema}.outbox_lease SET fence = 1`) // as if there had been a reader of events
	return l
}

// on is the same desk through another pool.
func (l harness) on(db *postgres.DB) harness {
	l.commits, l.locks, l.settings = postgres.NewCommitStore(db,
		pgtest.Uncounted{}), postgres.NewLockStore(db), postgres.NewLockSettingsStore(db)
	return l
}

func (l harness) ctx() context.Context { return okapi.WithTenant(l.t.Context(), l.id) }

// sql puts the tenant's schema into a statement.
func (l harness) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", postgres.SchemaName(l.id))
}

func (l harness) exec(statement string, args ...any) {
	l.t.Helper()
	if _, err := l.db.Pool().Exec(l.ctx(), l.sql(statement), args...); err != nil {
		l.t.Fatal(err)
	}
}

// count returns the one number that a query answers.
func (l harness) count(statement string, args ...any) (n int) {
	l.t.Helper()
	if err := l.db.Pool().QueryRow(l.ctx(), l.sql(statement), args...).Scan(&n); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// begin starts a transaction that the test drives by hand.
func (l harness) begin(statement string, args ...any) pgx.Tx {
	l.t.Helper()
	tx, err := l.db.Pool().Begin(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(l.ctx())) })
	if _, err := tx.Exec(l.ctx(), l.sql(statement), args...); err != nil {
		l.t.Fatal(err)
	}
	return tx
}

// waitUntilBlocked returns when n statements wait for a row of the tenant.
func (l harness) waitUntilBlocked(n int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for blocked := 0; blocked < n; <-tick.C {
		err := l.db.Pool().QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%' AND pid <> pg_backend_pid()`, postgres.SchemaName(
			l.id,
		)).Scan(&blocked)
		if err != nil {
			l.t.Fatalf("%d statements do not wait: %v", n, err)
		}
	}
}

// waitUntilBlockedBy returns when n sessions wait for a transaction, or for others that wait for it.
func (l harness) waitUntilBlockedBy(tx pgx.Tx, n int) {
	l.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for blocked := 0; blocked < n; <-tick.C {
		blocked = l.count(`
WITH RECURSIVE waiting AS (
    SELECT $1::int AS pid
    UNION SELECT a.pid FROM waiting w JOIN pg_stat_activity a ON w.pid = ANY (pg_blocking_pids(a.pid))
) SELECT count(*) - 1 FROM waiting`, tx.Conn().PgConn().PID())
	}
}

// addItem stores an item with version 1; more are its other properties.
func (l harness) addItem(status, more string) uuid.UUID {
	l.t.Helper()
	id := uuid.New()
	l.exec(`INSERT INTO {schema}.item (id, jsonb) VALUES ($1, $2)`, id,
		fmt.Sprintf(`{"id":%q,"_version":1,"status":{"name":%q,"date":"2020-01-01T00:00:00.000+00:00"}%s}`, id, status, more))
	return id
}

func (l harness) lock(user uuid.UUID) uuid.UUID {
	l.t.Helper()
	got, _, err := l.locks.Acquire(l.ctx(), lock.Request{UserID: user, TTL: time.Hour})
	if err != nil {
		l.t.Fatal(err)
	}
	return got.ID
}

// lending is a check-out to send.
type lending struct {
	loan, user, item, lock uuid.UUID
	settings               string
	version                int

	request, session uuid.UUID // Nil is none
	titles, release  bool
	takes            bool // the lock, in the commit
	noRecall         bool // the caller saw no recall

	limit              int       // 0 is none
	material, loanType uuid.UUID // that limit counts; Nil is all
	limits             string    // JSON of others, which come first
}

// withLock is a check-out of a new loan by a patron who holds the lock.
func (l harness) withLock(user, item uuid.UUID) lending {
	l.t.Helper()
	return lending{loan: uuid.New(), user: user, item: item, lock: l.lock(user), version: 1}
}

// takingLock is a check-out of a new loan that takes the patron's lock itself.
func (l harness) takingLock(user, item uuid.UUID) lending {
	return lending{loan: uuid.New(), user: user, item: item, lock: uuid.New(), version: 1, takes: true, release: true}
}

// withoutLock is a check-out by a new patron, with the feature off as stored now.
func (l harness) withoutLock(item uuid.UUID) lending {
	l.t.Helper()
	state, err := l.settings.State(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	return lending{loan: uuid.New(), user: uuid.New(), item: item, settings: state.Version, version: 1}
}

func (c lending) body() []byte {
	fence := fmt.Sprintf(`"settingsVersion":%q`, c.settings)
	switch {
	case c.settings == "":
		fence = fmt.Sprintf(`"lockId":%q`, c.lock)
	case c.lock != uuid.Nil:
		fence += fmt.Sprintf(`,"lockId":%q`, c.lock)
	}
	if c.request != uuid.Nil {
		fence += fmt.Sprintf(`,"requestId":%q`, c.request)
	}
	if c.noRecall {
		fence += `,"recalled":false`
	}
	if c.release {
		fence += `,"releaseLock":true`
	}
	if c.takes {
		fence += fmt.Sprintf(`,"takeLock":{"requestId":%q}`, uuid.New())
	}
	if c.limit != 0 {
		limit := schemas.LoanLimit{Max: c.limit}
		if c.material != uuid.Nil {
			limit.MaterialTypeID = c.material.String()
		}
		if c.loanType != uuid.Nil {
			limit.LoanTypeID = c.loanType.String()
		}
		own, _ := json.Marshal(limit)
		fence += `,"limit":` + string(own)
	}
	if c.limits != "" {
		fence += `,"limits":[` + c.limits + `]`
	}
	if c.session != uuid.Nil {
		fence += fmt.Sprintf(`,"sessionId":%q`, c.session)
	}
	return fmt.Appendf(nil, `{"loan":{"id":%q,"userId":%q,"itemId":%q,"loanDate":"2026-03-04T05:06:00Z",
		"dueDate":"2026-03-25T00:00:00Z",
		"action":"checkedout","future":1.10},"itemVersion":%d,"titleLevelRequests":%t,
		%s}`, c.loan, c.user, c.item, c.version, c.titles, fence)
}

// ending is how a commit succeeded; "" if it failed.
type ending struct {
	pgtest.Uncounted
	success commit.Outcome
}

// Ended implements commit.Observer.
func (e *ending) Ended(_ commit.Kind, o commit.Outcome, _ time.Duration) {
	if o == commit.Committed || o == commit.Repeated {
		e.success = o
	}
}

// sendParsed is send for a parsed check-out.
func (l harness) sendParsed(c commit.CheckOut) (schemas.CheckOutResult, commit.Outcome, error) {
	var end ending
	result, err := l.commits.ObservedBy(&end).CheckOut(l.ctx(), c)
	return result, end.success, err
}

// send commits a check-out. It may be called from any goroutine.
func (l harness) send(c lending) (schemas.CheckOutResult, commit.Outcome, error) {
	parsed, err := commit.ParseCheckOut(c.body())
	if err != nil {
		l.t.Error(err)
	}
	return l.sendParsed(parsed)
}

// lend commits a check-out that must succeed.
func (l harness) lend(c lending) schemas.CheckOutResult {
	l.t.Helper()
	got, outcome, err := l.send(c)
	if err != nil || outcome != commit.Committed {
		l.t.Fatalf("got %s, %v, want %s", outcome, err, commit.Committed)
	}
	return got
}

// takeBack commits a check-in of an item at that version. It may be called from
// any goroutine.
func (l harness) takeBack(item uuid.UUID, version int) (schemas.CheckInResult, error) {
	result, _, err := l.takeBackAs(uuid.New(), item, version)
	return result, err
}

// takeBackAs is takeBack for a check-in with that id.
func (l harness) takeBackAs(id, item uuid.UUID, version int) (schemas.CheckInResult, commit.Outcome, error) {
	parsed, err := commit.ParseCheckIn(fmt.Appendf(nil, `{"id":%q,"itemId":%q,"servicePointId":%q,
		"checkInDate":"2026-03-10T00:00:00Z",
		"itemVersion":%d,"itemStatus":"Available"}`, id, item, uuid.New(), version))
	if err != nil {
		l.t.Error(err)
	}
	var end ending
	result, err := l.commits.ObservedBy(&end).CheckIn(l.ctx(), parsed)
	return result, end.success, err
}

// wantUntouched checks that an item is as addItem left it and nothing was written
// beside it.
func (l harness) wantUntouched(item uuid.UUID) {
	l.t.Helper()
	loans := l.count(`SELECT count(*) FROM {schema}.loan WHERE item_id = $1`, item)
	events := l.count(`SELECT count(*) FROM {schema}.outbox WHERE payload->>'itemId' = $1::text`, item.String())
	lent := l.count(`SELECT count(*) FROM {schema}.item WHERE id = $1 AND (jsonb->>'_version' <> '1' OR `+
		`jsonb->'status'->>'name' <> 'Available')`, item)
	if loans+events+lent != 0 {
		l.t.Errorf("got %d loans, %d events, %d changed items, want nothing written", loans, events, lent)
	}
}

// field reads a property of a JSON document by its path.
func field(t *testing.T, doc json.RawMessage, path ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}
