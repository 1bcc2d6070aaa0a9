package postgres

import (
	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
)

// newRenewals renews the live locks of their owners.
func newRenewals(db *DB) *acquireGroups {
	g := &acquireGroups{
		db: db,
		one: groupQuery{renewOneSQL, db.writeBounds, func(group []*acquireMember) []any {
			a := group[0].Asked
			return []any{a.Namespace, a.Name, a.Owner, a.Kind, a.Value, a.TTL}
		}},
		many:   groupQuery{renewSQL, renewGroupBounds, listRenewals},
		fields: renewedFields,
		read: func(a engine.Acquire, l engine.Lock) engine.Result {
			l.Key, l.Owner, l.Kind, l.Value = a.Key, a.Owner, a.Kind, a.Value
			return engine.Result{Lock: l, Outcome: engine.Renewed}
		},
	}
	return g.open()
}

// renewedColumns are what a renewal returns: the caller knows the others.
const renewedColumns = `l.id, l.fence, l.granted_at, l.renewed_at, l.expires_at, l.requests`

// renewedFields are what renewedColumns are read into, and after them more.
func renewedFields(l *engine.Lock, more ...any) []any {
	return append([]any{
		&l.ID, &l.Fence, (*database.UTCTime)(&l.GrantedAt), (*database.UTCTime)(&l.RenewedAt), (*database.UTCTime)(&l.ExpiresAt), &l.Requests,
	}, more...)
}

var renewGroupBounds = database.Bounds{
	Statement: statementTimeout, Lock: database.GroupLockTimeout, PlansOnce: true, OnlyIndexes: true,
}.Batched()

// renewOneSQL renews the live lock of its owner. It sets its wait for the row by itself, so
// that a session with a time-out for statements needs no other statement.
var renewOneSQL = `
UPDATE {schema}.lock l
   SET (kind, value, renewed_at, expires_at, sweep_after) = (
       SELECT $4::text, $5::text, c.at, c.at + $6::interval, ` + sweepTime(`(c.at + $6::interval)`) + ` FROM ` + clock + `)
 WHERE ` + keyed + ` AND l.owner = $3::text AND ` + live + ` AND ` + database.SetGroupLockTimeout + ` <> ''
RETURNING ` + renewedColumns

// renewSQL is renewOneSQL for each of a group, in the order of the keys.
var renewSQL = `
UPDATE {schema}.lock l
   SET (kind, value, renewed_at, expires_at, sweep_after) = (
       SELECT a.kind, a.value, c.at, c.at + a.ttl, ` + sweepTime(`(c.at + a.ttl)`) + ` FROM ` + clock + `)
  FROM (SELECT namespace, name, owner, kind, value, microseconds * interval '1 microsecond' AS ttl, place
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
               WITH ORDINALITY a(namespace, name, owner, kind, value, microseconds, place)
         ORDER BY a.namespace COLLATE "C", a.name COLLATE "C") a
 WHERE l.namespace = a.namespace AND l.name = a.name AND l.owner = a.owner AND ` + live + `
RETURNING ` + renewedColumns + `, a.place - 1`

func listRenewals(group []*acquireMember) []any {
	n := len(group)
	kinds, values, ttls := make([]string, n), make([]string, n), make([]int64, n)
	for i, m := range group {
		kinds[i], values[i], ttls[i] = m.Asked.Kind, m.Asked.Value, m.Asked.TTL.Microseconds()
	}
	return append(listKeys(group), kinds, values, ttls)
}
