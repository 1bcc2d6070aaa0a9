package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"checkoutlock/database"
)

// callsAtOnce is how many calls for one namespace have a connection at once. While one works, the
// next waits for it in the database.
const callsAtOnce = 2

// namespaceCalls are the calls of this process that change something in a namespace, by
// namespace. Those above callsAtOnce wait without a connection. So a namespace that a frozen
// process holds does not take the connections of the others. Calls that add something wait for each
// other first, so that the end of a claim waits for few of them.
type namespaceCalls struct {
	mu     sync.Mutex
	places map[string]*namespacePlaces
}

// namespacePlaces are in the map while calls has them.
type namespacePlaces struct {
	all, adding *semaphore.Weighted
	calls       int // that run or wait
}

// run waits for a place until ctx is done, and runs f. Fault: Timeout.
func (n *namespaceCalls) run(ctx context.Context, namespace, op string, adds bool, f func() error) error {
	p := n.join(namespace)
	defer n.leave(namespace, p)
	if adds {
		if err := p.adding.Acquire(ctx, 1); err != nil {
			return errNoPlace(op, err)
		}
		defer p.adding.Release(1)
	}
	if err := p.all.Acquire(ctx, 1); err != nil {
		return errNoPlace(op, err)
	}
	defer p.all.Release(1)
	return f()
}

func errNoPlace(op string, err error) error {
	return toFault(op, fmt.Errorf("waiting for other calls in the namespace: %w", err))
}

func (n *namespaceCalls) join(namespace string) *namespacePlaces {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.places[namespace]
	if p == nil {
		p = &namespacePlaces{all: semaphore.NewWeighted(callsAtOnce), adding: semaphore.NewWeighted(callsAtOnce)}
		n.places[namespace] = p
	}
	p.calls++
	return p
}

func (n *namespaceCalls) leave(namespace string, p *namespacePlaces) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.calls--
	if p.calls == 0 {
		delete(n.places, namespace)
	}
}

const openNamespaceSQL = `
INSERT INTO {schema}.namespace (name, last_number, used_at)
SELECT $1::text, 0, clock_timestamp()
 WHERE NOT EXISTS (SELECT FROM {schema}.namespace n WHERE n.name = $1::text AND n.used_at > clock_timestamp() - interval '1 hour')
ON CONFLICT ON CONSTRAINT namespace_pkey DO UPDATE SET used_at = excluded.used_at`

// OpenNamespace implements engine.ClaimStore.
func (s *ClaimStore) OpenNamespace(ctx context.Context, namespace string) error {
	const op = "opening a namespace"
	return s.calls.run(ctx, namespace, op, true, func() error {
		_, err := s.db.exec(ctx, s.db.unreserved, op, bounds, openNamespaceSQL, namespace)
		return err
	})
}

// sweepNamespacesSQL looks at the page of names after $1. A claim that is stored meanwhile
// changes last_number, and so keeps its namespace: the numbers of its claims must not begin
// anew beside it.
const sweepNamespacesSQL = `
WITH page AS MATERIALIZED (
    SELECT n.name, n.last_number FROM {schema}.namespace n WHERE n.name > $1::text ORDER BY n.name LIMIT $3::integer),
forgotten AS (
    DELETE FROM {schema}.namespace n USING page p
     WHERE n.name = p.name AND n.last_number = p.last_number AND n.used_at < clock_timestamp() - $2::interval
       AND NOT EXISTS (SELECT FROM {schema}.claim c WHERE c.namespace = n.name)
       AND NOT EXISTS (SELECT FROM {schema}.removed_claim r WHERE r.namespace = n.name)
    RETURNING n.name)
SELECT (SELECT count(*) FROM forgotten), coalesce(max(name), '') FROM page`

// sweepPage is how many namespaces one statement of a sweep looks at.
const sweepPage = 1000

// SweepNamespaces forgets namespaces without claims that no client has used for longer than
// unused, and returns how many. They begin anew with number 1.
func (s *ClaimStore) SweepNamespaces(ctx context.Context, unused time.Duration) (int, error) {
	return s.sweepNamespaces(ctx, unused, sweepPage)
}

func (s *ClaimStore) sweepNamespaces(ctx context.Context, unused time.Duration, page int) (forgotten int, err error) {
	after := ""
	for {
		var n int
		err := s.db.write(ctx, s.db.ordinary, "sweeping namespaces", func(ctx context.Context, conn *pgxpool.Conn) error {
			return database.ScanRow(ctx, conn, lazyBounds, s.db.nameSchema(conn, sweepNamespacesSQL), []any{after, unused, page}, []any{&n, &after})
		})
		forgotten += n
		if err != nil || after == "" {
			return forgotten, err
		}
	}
}
