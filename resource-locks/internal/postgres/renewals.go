package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
)

// renewals renews the locks of several callers in one statement and one commit. A caller
// whose lock the group does not renew runs the statement for a single caller. So does each
// member if another transaction has locked one of their rows.
type renewals struct {
	db *DB
	// statements with their tables; single is for a group of one
	group, single string
	groups        database.Groups[struct{}, engine.Acquire, engine.Grant]
}

type renewal = database.Member[engine.Acquire, engine.Grant]

func newRenewals(db *DB) *renewals {
	r := &renewals{db: db, group: db.nameTables(renewSQL), single: db.nameTables(acquireSQL)}
	r.groups.Pool, r.groups.Send, r.groups.LeaveEarly = db.conns.Urgent, r.send, true
	return r
}

// groupBounds is bounds for a group. Its wait for a row is short, because others wait for
// the group.
const groupBounds = `SELECT set_config('lock_timeout', '50ms', true), set_config('statement_timeout', '4s', true)`

// arrayBounds is groupBounds for a statement with arrays. The plan is made once a
// connection: PostgreSQL would plan such statements anew each time.
const arrayBounds = groupBounds + `,
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`

// renewSQL renews the live locks of their owners, in the order of the keys.
var renewSQL = `
UPDATE {schema}.lock l
   SET (kind, value, renewed_at, expires_at, sweep_after) = (
       SELECT a.kind, a.value, c.at, c.at + a.ttl, ` + sweepTime(`(c.at + a.ttl)`) + ` FROM ` + clock + `)
  FROM (SELECT namespace, name, owner, kind, value, microseconds * interval '1 microsecond' AS ttl, position
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
               WITH ORDINALITY a(namespace, name, owner, kind, value, microseconds, position)
         ORDER BY a.namespace COLLATE "C", a.name COLLATE "C") a
 WHERE l.namespace = a.namespace AND l.name = a.name AND l.owner = a.owner AND ` + live + `
RETURNING ` + lockColumns + `, a.position - 1`

// run renews the lock of one caller, or grants what the statement for a single caller
// does. Error: ErrRunAlone if neither happened.
func (r *renewals) run(ctx context.Context, a engine.Acquire) (engine.Grant, error) {
	return r.groups.Run(ctx, struct{}{}, a)
}

// send sends a group in one round trip and one transaction.
func (r *renewals) send(ctx context.Context, conn *pgxpool.Conn, group []*renewal) error {
	return r.db.writeWith(conn, func() (err error) {
		if len(group) == 1 {
			group[0].Answer, err = acquire(ctx, conn, groupBounds, r.single, group[0].Asked)
			group[0].Err = nil
			return err
		}
		database.AnswerAll(group, database.ErrRunAlone)
		var queue pgx.Batch
		queue.Queue(arrayBounds)
		queue.Queue(r.group, renewalArgs(group)...).Query(func(rows pgx.Rows) error {
			var l engine.Lock
			var position int
			_, err := pgx.ForEachRow(rows, lockFields(&l, &position), func() error {
				group[position].Answer, group[position].Err = engine.Grant{Lock: l, Outcome: engine.Renewed}, nil
				l = engine.Lock{}
				return nil
			})
			return err
		})
		return conn.SendBatch(ctx, &queue).Close()
	})
}

func renewalArgs(group []*renewal) []any {
	n := len(group)
	namespaces, names, owners := make([]string, n), make([]string, n), make([]string, n)
	kinds, values, ttls := make([]string, n), make([]string, n), make([]int64, n)
	for i, m := range group {
		a := m.Asked
		namespaces[i], names[i], owners[i], kinds[i], values[i], ttls[i] = a.Namespace, a.Name, a.Owner, a.Kind, a.Value, a.TTL.Microseconds()
	}
	return []any{namespaces, names, owners, kinds, values, ttls}
}
