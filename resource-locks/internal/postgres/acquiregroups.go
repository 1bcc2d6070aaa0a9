package postgres

import (
	"context"

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
	groups database.Groups[struct{}, engine.Acquire, engine.Result]
	one    groupQuery // for a group of one
	many   groupQuery // its rows end with the place in the group, counted from 0
	// read makes the answer of a row, whose columns fields are for.
	fields func(l *engine.Lock, more ...any) []any
	read   func(a engine.Acquire, l engine.Lock) engine.Result
}

type acquireMember = database.Member[engine.Acquire, engine.Result]

// groupQuery is a statement, the bounds before it and its arguments.
type groupQuery struct {
	statement, bounds string
	args              func(group []*acquireMember) []any
}

func (g *acquireGroups) open() *acquireGroups {
	g.groups.Pool, g.groups.Send, g.groups.LeaveEarly = g.db.conns.Urgent, g.send, true
	return g
}

// send sends a group in one round trip and one transaction.
func (g *acquireGroups) send(ctx context.Context, conn *pgxpool.Conn, group []*acquireMember) error {
	return g.db.writeWith(ctx, conn, "answering a group", func() error {
		database.AnswerAll(group, database.ErrRunAlone) // until this attempt answers them
		q := g.many
		if len(group) == 1 {
			q = g.one
		}
		return database.Query(ctx, conn, q.bounds, g.db.nameSchema(conn, q.statement), q.args(group), func(rows pgx.Rows) error {
			if err := rows.Err(); err != nil {
				return err // a refused statement has no columns
			}
			var l engine.Lock
			var place int
			dest := g.fields(&l, &place)[:len(rows.FieldDescriptions())] // a group of one has no place
			_, err := pgx.ForEachRow(rows, dest, func() error {
				group[place].Answer, group[place].Err = g.read(group[place].Asked, l), nil
				return nil
			})
			return err
		})
	})
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
