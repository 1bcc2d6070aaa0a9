package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
)

// acquireGroups answers several callers of Acquire by one statement and one commit. A caller
// that it does not answer runs acquireSQL. So does each member if another transaction has
// locked one of their rows.
type acquireGroups struct {
	db     *DB
	groups database.Groups[struct{}, engine.Acquire, engine.Grant]
	one    groupQuery // for a group of one
	many   groupQuery // its rows end with the place in the group, counted from 0
	// read makes the answer of a row, whose columns fields are for.
	fields func(l *engine.Lock, more ...any) []any
	read   func(a engine.Acquire, l engine.Lock) engine.Grant
}

type acquireMember = database.Member[engine.Acquire, engine.Grant]

// groupQuery is a statement with its tables, the bounds before it and its arguments.
type groupQuery struct {
	statement, bounds string
	args              func(group []*acquireMember) []any
}

// planOnce makes the plan of a statement with arrays once a connection: PostgreSQL would plan
// it anew each time. Only index scans keep their speed when a table grows under such a plan.
const planOnce = `,
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`

func (g *acquireGroups) open() *acquireGroups {
	g.groups.Pool, g.groups.Send, g.groups.LeaveEarly = g.db.conns.Urgent, g.send, true
	return g
}

// run answers one caller. Error: ErrRunAlone if the statement does not.
func (g *acquireGroups) run(ctx context.Context, a engine.Acquire) (engine.Grant, error) {
	return g.groups.Run(ctx, struct{}{}, a)
}

// send sends a group in one round trip and one transaction.
func (g *acquireGroups) send(ctx context.Context, conn *pgxpool.Conn, group []*acquireMember) error {
	return g.db.writeWith(conn, func() error {
		database.AnswerAll(group, database.ErrRunAlone) // until this attempt answers them
		if len(group) == 1 {
			return g.sendOne(ctx, conn, group)
		}
		var queue pgx.Batch
		queue.Queue(g.many.bounds)
		queue.Queue(g.many.statement, g.many.args(group)...).Query(func(rows pgx.Rows) error {
			var l engine.Lock
			var place int
			_, err := pgx.ForEachRow(rows, g.fields(&l, &place), func() error {
				group[place].Answer, group[place].Err = g.read(group[place].Asked, l), nil
				l = engine.Lock{}
				return nil
			})
			return err
		})
		return conn.SendBatch(ctx, &queue).Close()
	})
}

func (g *acquireGroups) sendOne(ctx context.Context, conn *pgxpool.Conn, group []*acquireMember) error {
	var l engine.Lock
	err := scanRow(ctx, conn, g.one.bounds, g.one.statement, g.one.args(group), g.fields(&l))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	group[0].Answer, group[0].Err = g.read(group[0].Asked, l), nil
	return nil
}

// listKeys returns the namespaces, names and owners of a group as arrays.
func listKeys(group []*acquireMember) []any {
	n := len(group)
	namespaces, names, owners := make([]string, n), make([]string, n), make([]string, n)
	for i, m := range group {
		namespaces[i], names[i], owners[i] = m.Asked.Namespace, m.Asked.Name, m.Asked.Owner
	}
	return []any{namespaces, names, owners}
}
