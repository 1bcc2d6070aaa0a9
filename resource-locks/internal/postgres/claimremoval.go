package postgres

import (
	"context"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// Removals differ in which claims are gone, and in what they say of them. $1 is the namespace,
// $2 the caller's instance, $3 what is gone.
var (
	removeSQL        = removalSQL(`c.namespace = $1::text AND c.id = $3::uuid`, ``, grantedSQL)
	removeWaitingSQL = removalSQL(`c.namespace = $1::text AND c.id = $3::uuid AND (c.held_at IS NULL OR c.abandon <= interval '0')`, ``, grantedSQL)
	removeForcedSQL  = removalSQL(`c.namespace = $1::text AND c.id = $3::uuid`, `
noted AS (
    INSERT INTO {schema}.forced_release (fence, namespace, name, owner, forced_by, reason)
    SELECT number, namespace, $4::text, owner, $5::text, $6::text FROM gone),`, grantedSQL+`
UNION ALL
SELECT g.id, false, NULL FROM gone g`)
	removeEndedSQL = removalSQL(`c.namespace = $1::text AND c.id = ANY($3::text::uuid[])
       AND (c.ends_at <= clock_timestamp()
            OR EXISTS (SELECT FROM {schema}.instance i WHERE i.id = c.instance AND `+leaseOver+`))`, ``, `
SELECT m.id, true, m.durable, m.instance, m.number, m.namespace, m.owner, m.abandon, m.held_at, NULL AS paths, NULL AS writes
  FROM moved m WHERE m.held_at IS NOT NULL
UNION ALL
SELECT g.id, false, NULL, g.instance, g.number, g.namespace, g.owner, g.abandon, g.held_at, p.paths, p.writes
  FROM gone g LEFT JOIN (
       SELECT number, array_agg(path ORDER BY position) AS paths, array_agg(write ORDER BY position) AS writes FROM freed GROUP BY number
       ) p ON p.number = g.number`)
)

const grantedSQL = `
SELECT m.id, true, m.durable FROM moved m WHERE m.held_at IS NOT NULL`

// leaseOver is when a claim c with a connection has ended with the lease of its instance i.
const leaseOver = `i.ended_at IS NOT NULL AND c.ends_at IS NULL AND (c.held_at IS NULL OR i.ended_at + c.abandon <= clock_timestamp())`

// removalSQL removes claims of the namespace, and places those that waited for them. It notes
// the removed claims that others still wait for.
func removalSQL(condition, parts, report string) string {
	return `
WITH gone AS (DELETE FROM {schema}.claim c WHERE ` + condition + ` RETURNING c.id, c.instance, c.number, c.namespace, c.owner, c.abandon, c.held_at),` + parts + `
freed AS (
    DELETE FROM {schema}.claim_resource r USING gone g WHERE r.namespace = $1::text AND r.number = g.number
    RETURNING r.number, r.position, r.path, r.write),` + placeParts + `
noted_rest AS (
    INSERT INTO {schema}.removed_claim (namespace, number) SELECT $1::text, g.number FROM gone g WHERE ` + hasWaiters + `)` + report
}

// placeLeftSQL places claims of the namespace that earlier transactions have left.
var placeLeftSQL = `
WITH gone AS MATERIALIZED (SELECT r.number FROM {schema}.removed_claim r WHERE r.namespace = $1::text ORDER BY r.number LIMIT {atOnce}),` + placeParts + `
forgotten AS (
    DELETE FROM {schema}.removed_claim r USING gone g
     WHERE r.namespace = $1::text AND r.number = g.number AND NOT ` + hasWaiters + `)` + grantedSQL

// placeParts places the first of the claims that waited for those in gone: each waits for
// another claim, or is held. One whose process has no lease any more ends at once when it is held.
var placeParts = `
waiting AS MATERIALIZED (
    SELECT w.id, w.number, w.prefixes, sum(w.prefixes) OVER (ORDER BY w.number) AS work
      FROM (SELECT w.id, w.number, w.prefixes
              FROM gone g CROSS JOIN LATERAL (
                   SELECT c.id, c.number, c.prefixes FROM {schema}.claim c
                    WHERE c.namespace = $1::text AND c.waits_for = g.number AND c.number NOT IN (SELECT h.number FROM gone h)
                    ORDER BY c.number LIMIT {atOnce}) w
             ORDER BY w.number LIMIT {atOnce}) w),
placed AS MATERIALIZED (
    SELECT w.id, w.number, ` + latestConflict(
	`(SELECT o.key, o.write FROM {schema}.claim_resource o WHERE o.namespace = $1::text AND o.number = w.number) mine`,
	`r.number < w.number AND r.number NOT IN (SELECT h.number FROM gone h)`) + ` AS latest
      FROM waiting w
     WHERE w.work <= {maxPrefixes} AND clock_timestamp() < statement_timestamp() + interval '` + placeTime + `' OR w.work = w.prefixes),
moved AS (
    UPDATE {schema}.claim c
       SET waits_for = p.latest, held_at = CASE WHEN p.latest IS NULL THEN clock_timestamp() END,
           is_new = p.latest IS NULL AND c.instance <> $2::uuid,
           ends_at = CASE WHEN p.latest IS NULL AND EXISTS (
               SELECT FROM {schema}.instance i WHERE i.id = c.instance AND (i.ended_at IS NOT NULL OR i.lease_until <= clock_timestamp())
               ) THEN clock_timestamp() END
      FROM placed p WHERE c.id = p.id
    RETURNING c.id, c.instance, c.number, c.namespace, c.owner, c.abandon, c.held_at, CASE WHEN c.held_at IS NOT NULL THEN ` + makeDurable + ` END AS durable),`

// placeTime is how long a statement begins to place claims, after the first one. Each of those that
// wait above many claims looks at all of them.
const placeTime = `300 ms`

// hasWaiters is that claims still wait for g, which are not placed.
const hasWaiters = `EXISTS (
       SELECT FROM {schema}.claim c
        WHERE c.namespace = $1::text AND c.waits_for = g.number AND c.number NOT IN (SELECT p.number FROM placed p)
          AND c.number NOT IN (SELECT h.number FROM gone h))`

// Withdraw implements engine.ClaimStore.
func (s *ClaimStore) Withdraw(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) ([]uuid.UUID, error) {
	var m moved
	b := s.newBatch(namespace, false, callWait)
	b.moveClaims(&m, s.removeSQL, namespace, caller, id)
	err := b.send(ctx, "withdrawing a claim")
	return m.granted, err
}

// endConnectionSQL counts from the end of the instance's lease if that was earlier.
const endConnectionSQL = `
UPDATE {schema}.claim c
   SET ends_at = c.abandon + least(clock_timestamp(), (SELECT coalesce(i.ended_at, i.lease_until) FROM {schema}.instance i WHERE i.id = c.instance))
 WHERE c.namespace = $1::text AND c.id = $2::uuid AND c.held_at IS NOT NULL AND c.abandon > interval '0' AND c.ends_at IS NULL`

// Disconnect implements engine.ClaimStore. It is durable: a held claim without the note of
// its end is withdrawn at once, when its instance misses the connection.
func (s *ClaimStore) Disconnect(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) ([]uuid.UUID, error) {
	var m moved
	b := s.newBatch(namespace, true, callWait)
	b.queue.Queue(endConnectionSQL, namespace, id)
	b.moveClaims(&m, s.removeWaitingSQL, namespace, caller, id)
	err := b.send(ctx, "ending a connection")
	return m.granted, err
}

// ForceWithdraw implements engine.ClaimStore.
func (s *ClaimStore) ForceWithdraw(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID, n engine.Note) ([]uuid.UUID, error) {
	resources, err := s.resources(ctx, namespace, id)
	if err != nil {
		return nil, err
	}
	var m moved
	b := s.newBatch(namespace, true, callWait)
	b.moveClaims(&m, s.removeForcedSQL, namespace, caller, id, engine.FormatResources(resources), n.By, n.Reason)
	if err := b.send(ctx, "releasing a claim by force"); err != nil {
		return nil, err
	}
	if len(m.removed) == 0 {
		return nil, fault.New(fault.NotFound, "There is no such claim")
	}
	return m.granted, nil
}

const resourcesSQL = `
SELECT array_agg(r.path ORDER BY r.position), array_agg(r.write ORDER BY r.position)
  FROM {schema}.claim c JOIN {schema}.claim_resource r ON r.namespace = c.namespace AND r.number = c.number
 WHERE c.namespace = $1::text AND c.id = $2::uuid`

// resources returns what a claim has, nothing of an unknown one. They never change.
func (s *ClaimStore) resources(ctx context.Context, namespace string, id uuid.UUID) ([]engine.Resource, error) {
	var paths [][]byte
	var writes []bool
	err := s.db.readRow(ctx, s.db.unreserved, "reading a claim", resourcesSQL, []any{namespace, id}, []any{&paths, &writes})
	return decodeResources(paths, writes), err
}
