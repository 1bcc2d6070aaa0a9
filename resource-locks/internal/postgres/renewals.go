package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
)

// renewals renews the locks of several callers in one statement and one commit. A caller
// whose lock was not renewed runs the statement that also grants. So does each member if
// another transaction has locked one of their rows.
type renewals struct {
	db *DB
	// statements with their tables
	group, single string
	groups        database.Groups[struct{}, engine.Acquire, engine.Grant]
}

type renewal = database.Member[engine.Acquire, engine.Grant]

func newRenewals(db *DB) *renewals {
	r := &renewals{db: db, group: db.nameTables(renewSQL), single: db.nameTables(renewOneSQL)}
	r.groups.Pool, r.groups.Send, r.groups.LeaveEarly = db.conns.Urgent, r.send, true
	return r
}

// shortWait is how long a renewal waits for a row, because others wait for its group.
const shortWait = `set_config('lock_timeout', '50ms', true)`

// arrayBounds is bounds for a statement with arrays. The plan is made once a connection:
// PostgreSQL would plan such statements anew each time.
const arrayBounds = writeBounds + `, ` + shortWait + `,
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`

// renewedColumns are what a renewal returns: the caller knows the others.
const renewedColumns = `l.id, l.fence, l.granted_at, l.renewed_at, l.expires_at, l.requests`

// renewedFields are what renewedColumns are read into, and after them more.
func renewedFields(l *engine.Lock, more ...any) []any {
	return append([]any{
		&l.ID, &l.Fence, (*utcTime)(&l.GrantedAt), (*utcTime)(&l.RenewedAt), (*utcTime)(&l.ExpiresAt), &l.Requests,
	}, more...)
}

// grantRenewal is the answer to a, whose lock was renewed.
func grantRenewal(a engine.Acquire, l engine.Lock) engine.Grant {
	l.Key, l.Owner, l.Kind, l.Value = a.Key, a.Owner, a.Kind, a.Value
	return engine.Grant{Lock: l, Outcome: engine.Renewed}
}

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
RETURNING ` + renewedColumns + `, a.position - 1`

// renewOneSQL renews the live lock of its owner. It sets its wait for the row by itself, so
// that a session with a time-out for statements needs no other statement.
var renewOneSQL = `
UPDATE {schema}.lock l
   SET (kind, value, renewed_at, expires_at, sweep_after) = (
       SELECT $4::text, $5::text, c.at, c.at + $6::interval, ` + sweepTime(`(c.at + $6::interval)`) + ` FROM ` + clock + `)
 WHERE ` + keyed + ` AND l.owner = $3::text AND ` + live + ` AND ` + shortWait + ` <> ''
RETURNING ` + renewedColumns

// run renews the lock of one caller. Error: ErrRunAlone if it did not happen.
func (r *renewals) run(ctx context.Context, a engine.Acquire) (engine.Grant, error) {
	return r.groups.Run(ctx, struct{}{}, a)
}

// send sends a group in one round trip and one transaction.
func (r *renewals) send(ctx context.Context, conn *pgxpool.Conn, group []*renewal) error {
	return r.db.writeWith(conn, func() error {
		database.AnswerAll(group, database.ErrRunAlone) // until it is renewed in this attempt
		if len(group) == 1 {
			return r.renewOne(ctx, conn, group[0])
		}
		var queue pgx.Batch
		queue.Queue(arrayBounds)
		queue.Queue(r.group, renewalArgs(group)...).Query(func(rows pgx.Rows) error {
			var l engine.Lock
			var position int
			_, err := pgx.ForEachRow(rows, renewedFields(&l, &position), func() error {
				m := group[position]
				m.Answer, m.Err = grantRenewal(m.Asked, l), nil
				l = engine.Lock{}
				return nil
			})
			return err
		})
		return conn.SendBatch(ctx, &queue).Close()
	})
}

func (r *renewals) renewOne(ctx context.Context, conn *pgxpool.Conn, m *renewal) error {
	a := m.Asked
	var l engine.Lock
	err := scanRow(ctx, conn, r.db.writeBounds, r.single, []any{a.Namespace, a.Name, a.Owner, a.Kind, a.Value, a.TTL}, renewedFields(&l))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil // it runs the other statement
	case err != nil:
		return err
	}
	m.Answer, m.Err = grantRenewal(a, l), nil
	return nil
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
