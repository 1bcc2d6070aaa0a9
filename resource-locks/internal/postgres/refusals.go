package postgres

import (
	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
)

// newRefusals reads the locks that refuse callers. An answer is no older than its call,
// because a call joins only a group that has not begun.
func newRefusals(db *DB) *acquireGroups {
	g := &acquireGroups{
		db: db,
		one: groupQuery{refuseOneSQL, db.readBounds, func(group []*acquireMember) []any {
			a := group[0].Asked
			return []any{a.Namespace, a.Name, a.Owner}
		}},
		many:   groupQuery{refuseSQL, refuseGroupBounds, listKeys},
		fields: lockFields,
		read: func(_ engine.Acquire, l engine.Lock) engine.Result {
			return engine.Result{Lock: l, Outcome: engine.Held}
		},
	}
	return g.open()
}

var refuseGroupBounds = database.Bounds{Statement: readTimeout, PlansOnce: true, OnlyIndexes: true}.Batched() + onPrimary

// refuseOneSQL returns the live lock of another owner.
var refuseOneSQL = `SELECT ` + lockColumns + ` FROM {schema}.lock l WHERE ` + keyed + ` AND l.owner <> $3::text AND ` + live

// refuseSQL is refuseOneSQL for each of a group. OFFSET makes the planner look up one key
// after the other.
var refuseSQL = `
SELECT ` + lockColumns + `, a.place - 1
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY a(namespace, name, owner, place)
       CROSS JOIN LATERAL (SELECT * FROM {schema}.lock l WHERE l.namespace = a.namespace AND l.name = a.name OFFSET 0) l
 WHERE l.owner <> a.owner AND ` + live
