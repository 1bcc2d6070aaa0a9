package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/schemas/okapi"
)

// groupTimeout bounds the statements of a group once it has a connection.
const groupTimeout = 5 * time.Second

// groups sends the calls of one kind in groups, one group of a tenant at a time. Calls that
// arrive while a group is under way form the next one, which its first member sends. So one
// transaction serves all of them, and a call without company waits for no other.
//
//   - A member whose context ends before its group begins leaves, and the next one sends
//     the group. After that it waits for the answer, so that it knows what it got.
//   - Members are answered after the group's transaction has committed.
//   - If the transaction did not happen, each member gets errRunAlone. If nothing is known
//     of it, each gets the error, because a second run could grant a lock twice.
type groups[Q, A any] struct {
	pool *pgxpool.Pool
	// send answers all members, or returns an error. A group has at least one.
	send func(ctx context.Context, conn *pgxpool.Conn, group []*member[Q, A]) error

	mu sync.Mutex
	// waiting are the calls of the next group, by tenant. A tenant is a key only while a
	// group of it is under way.
	waiting map[okapi.Tenant][]*member[Q, A]
}

// member is one call of a group, and its answer.
type member[Q, A any] struct {
	asked  Q
	answer A
	err    error
	leads  chan bool // true to send the next group, false when answered
}

// errRunAlone is the answer of a group that did nothing for the member. The member runs
// the statement for a single call.
var errRunAlone = errors.New("run the statement for a single call")

var errNoAnswer = errors.New("the group ended without an answer")

func newGroups[Q, A any](pool *pgxpool.Pool, send func(context.Context, *pgxpool.Conn, []*member[Q, A]) error) *groups[Q, A] {
	return &groups[Q, A]{pool: pool, send: send, waiting: map[okapi.Tenant][]*member[Q, A]{}}
}

// run returns the answer to one call.
func (g *groups[Q, A]) run(ctx context.Context, asked Q) (A, error) {
	var none A
	tenant, err := okapi.TenantFrom(ctx)
	if err != nil {
		return none, errNoTenant
	}
	m := &member[Q, A]{asked: asked, err: errNoAnswer, leads: make(chan bool, 1)}
	if g.enter(tenant, m) {
		g.lead(ctx, tenant, m)
		return m.answer, m.err
	}
	var leads bool
	select {
	case leads = <-m.leads:
	case <-ctx.Done():
		if g.leave(tenant, m) {
			return none, fmt.Errorf("waiting for a group: %w", ctx.Err())
		}
		leads = <-m.leads
	}
	if leads {
		g.lead(ctx, tenant, m)
	}
	return m.answer, m.err
}

// enter reports whether m leads, because no group of the tenant is under way. Else m waits.
func (g *groups[Q, A]) enter(tenant okapi.Tenant, m *member[Q, A]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting, underWay := g.waiting[tenant]
	if underWay {
		g.waiting[tenant] = append(waiting, m)
		return false
	}
	g.waiting[tenant] = nil
	return true
}

// leave reports whether m was still waiting. Else it leads, or is answered.
func (g *groups[Q, A]) leave(tenant okapi.Tenant, m *member[Q, A]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.waiting[tenant]
	i := slices.Index(waiting, m)
	if i < 0 {
		return false
	}
	g.waiting[tenant] = slices.Delete(waiting, i, i+1)
	return true
}

// lead sends a group of m and all that wait, and answers them.
func (g *groups[Q, A]) lead(ctx context.Context, tenant okapi.Tenant, m *member[Q, A]) {
	group := []*member[Q, A]{m}
	defer func() { // also after a panic, which must not block the tenant
		g.endGroup(tenant)
		for _, other := range group[1:] {
			other.leads <- false
		}
	}()
	conn, err := g.pool.Acquire(ctx)
	if err != nil {
		m.err = fmt.Errorf("getting a connection: %w", err)
		if ctx.Err() == nil { // the others would fail one after the other
			group = append(group, g.takeWaiting(tenant)...)
			answerAll(group[1:], errRunAlone)
		}
		return
	}
	defer conn.Release()
	group = append(group, g.takeWaiting(tenant)...)
	// From here on the end of the leader's call must not lose the answers.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), groupTimeout)
	defer cancel()
	switch err := g.send(ctx, conn, group); {
	case err == nil:
	case changedNothing(err):
		answerAll(group, errRunAlone)
	default:
		answerAll(group, err)
	}
}

func (g *groups[Q, A]) takeWaiting(tenant okapi.Tenant) []*member[Q, A] {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.waiting[tenant]
	g.waiting[tenant] = nil
	return waiting
}

// endGroup lets the first that waits lead the next group. It forgets a tenant for which
// no call waits.
func (g *groups[Q, A]) endGroup(tenant okapi.Tenant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.waiting[tenant]
	if len(waiting) == 0 {
		delete(g.waiting, tenant)
		return
	}
	g.waiting[tenant] = waiting[1:]
	waiting[0].leads <- true
}

func answerAll[Q, A any](group []*member[Q, A], err error) {
	for _, m := range group {
		m.err = err
	}
}

// changedNothing reports whether a statement that failed with err was rolled back, or not
// sent. After the loss of a session that is not known.
func changedNothing(err error) bool {
	code, _ := database.SQLState(err)
	return code != "" && !database.ConnectionLost(err) || pgconn.SafeToRetry(err)
}

// Settings for a group's transaction.
//
//   - The wait for a row is short, because the other members wait too. It is shorter than
//     any deadlock_timeout in use.
//   - The plan uses the index and is made once a connection, whatever the size of table
//     and group. A plan made for the almost empty table would scan it for ever.
const groupSettingsSQL = `
SELECT set_config('lock_timeout', '` + groupLockTimeout + `', true), set_config('statement_timeout', '5s', true), ` + notDurable + `,
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`

const groupLockTimeout = "50ms"

// queryGroup runs one statement for a group, in one round trip and one transaction. It
// returns after the commit. scan reads the rows.
func queryGroup(ctx context.Context, conn *pgxpool.Conn, statement string, args []any, scan func(pgx.Rows) error) error {
	statement, err := nameSchema(ctx, statement)
	if err != nil {
		return err
	}
	var queue pgx.Batch
	queue.Queue(groupSettingsSQL)
	queue.Queue(statement, args...).Query(scan)
	return conn.SendBatch(ctx, &queue).Close()
}
