package postgres

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
)

// renewals renews the locks of several callers in one statement. Callers that arrive while
// a group is under way form the next one, which its first member sends. So they share one
// commit, and a caller without company waits for no other.
//
// A caller whose lock the group does not renew runs the statement for a single caller. So
// does each member if another transaction has locked one of their rows.
type renewals struct {
	db *DB
	// statements with their tables; single is for a leader without company
	group, single string

	mu       sync.Mutex
	underWay bool
	waiting  []*renewal // the next group
}

// renewal is one member of a group, and what became of it.
type renewal struct {
	asked engine.Acquire
	grant engine.Grant
	done  bool // otherwise grant is not set
	err   error
	leads chan bool // true to send the next group, false when answered
}

func newRenewals(db *DB) *renewals {
	return &renewals{
		db: db, group: db.nameTables(renewSQL),
		single: db.nameTables(strings.Replace(acquireSQL, rowWait, groupRowWait, 1)),
	}
}

// groupRowWait is how long a group waits for a row. Others wait for the group.
const groupRowWait = `'50ms'`

// renewalSettingsSQL is for the transaction of a group. The plan is made once a connection:
// PostgreSQL would plan statements with arrays anew each time.
const renewalSettingsSQL = `
SELECT set_config('lock_timeout', ` + groupRowWait + `, true), set_config('statement_timeout', '5s', true),
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
// does. It reports false if neither happened.
func (r *renewals) run(ctx context.Context, a engine.Acquire) (engine.Grant, bool, error) {
	m := &renewal{asked: a, leads: make(chan bool, 1)}
	if r.enter(m) || <-m.leads {
		r.lead(ctx, m)
	}
	return m.grant, m.done, m.err
}

// enter reports whether m leads, because no group is under way. Else m waits.
func (r *renewals) enter(m *renewal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.underWay {
		r.waiting = append(r.waiting, m)
		return false
	}
	r.underWay = true
	return true
}

// lead sends a group of m and all that wait, and answers them.
func (r *renewals) lead(ctx context.Context, m *renewal) {
	group := append([]*renewal{m}, r.takeWaiting()...)
	defer func() { // also after a panic, which must not block the others
		r.endGroup()
		for _, other := range group[1:] {
			other.leads <- false
		}
	}()
	var err error
	if len(group) == 1 {
		m.grant, err = r.db.acquire(ctx, r.single, m.asked)
		m.done = err == nil
	} else {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout) // the leader may leave, the others stay
		defer cancel()
		err = r.db.write(ctx, "renewing locks", func(ctx context.Context, conn *pgxpool.Conn) error {
			group = append(group, r.takeWaiting()...) // who came while it waited for a connection
			return r.send(ctx, conn, group)
		})
	}
	if code, _ := database.SQLState(err); code == database.LockNotAvailable {
		err = nil // nothing happened, and the single statement waits longer
	}
	for _, other := range group {
		other.err = err
	}
}

func (r *renewals) takeWaiting() []*renewal {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.waiting
	r.waiting = nil
	return waiting
}

// endGroup lets the first that waits lead the next group.
func (r *renewals) endGroup() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.underWay = false
		return
	}
	next := r.waiting[0]
	r.waiting = slices.Delete(r.waiting, 0, 1)
	next.leads <- true
}

// send sends a group in one round trip and one transaction.
func (r *renewals) send(ctx context.Context, conn *pgxpool.Conn, group []*renewal) error {
	var queue pgx.Batch
	queue.Queue(renewalSettingsSQL)
	queue.Queue(r.group, renewalArgs(group)...).Query(func(rows pgx.Rows) error {
		var l engine.Lock
		var position int
		_, err := pgx.ForEachRow(rows, lockFields(&l, &position), func() error {
			group[position].grant, group[position].done = engine.Grant{Lock: l, Outcome: engine.Renewed}, true
			l = engine.Lock{}
			return nil
		})
		return err
	})
	err := conn.SendBatch(ctx, &queue).Close()
	if err != nil {
		for _, m := range group {
			m.done = false
		}
	}
	return err
}

func renewalArgs(group []*renewal) []any {
	n := len(group)
	namespaces, names, owners := make([]string, n), make([]string, n), make([]string, n)
	kinds, values, ttls := make([]string, n), make([]string, n), make([]int64, n)
	for i, m := range group {
		a := m.asked
		namespaces[i], names[i], owners[i], kinds[i], values[i], ttls[i] = a.Namespace, a.Name, a.Owner, a.Kind, a.Value, a.TTL.Microseconds()
	}
	return []any{namespaces, names, owners, kinds, values, ttls}
}
