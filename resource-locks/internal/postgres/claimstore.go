package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// ClaimStore implements engine.ClaimStore on the tables claim, claim_resource, namespace
// and instance.
//
// A waiting claim names in waits_for the latest earlier claim that it conflicts with. When
// that one goes, the claim looks for another, and is held if there is none. So of many
// that wait for one path, each release looks at one.
//
// What changes claims is one batch, which PostgreSQL runs as one transaction after it has
// arrived as a whole. It first locks the namespace. So a process that freezes holds no
// namespace.
type ClaimStore struct {
	db *DB
	// statements with their tables
	store, end, remove, removeWaiting, removeEnded, removeForced     string
	endLeases, findEnded, newGrants, noteGrants, keepLease, claimsOf string
}

var _ engine.ClaimStore = (*ClaimStore)(nil)

// NewClaimStore returns the claims in db.
func NewClaimStore(db *DB) *ClaimStore {
	return &ClaimStore{
		db: db, store: db.nameTables(storeClaimSQL), end: db.nameTables(endConnectionSQL),
		remove: db.nameTables(removeSQL), removeWaiting: db.nameTables(removeWaitingSQL), removeEnded: db.nameTables(removeEndedSQL),
		removeForced: db.nameTables(removeForcedSQL), endLeases: db.nameTables(endLeasesSQL),
		findEnded: db.nameTables(findEndedSQL), newGrants: db.nameTables(newGrantsSQL), noteGrants: db.nameTables(noteGrantsSQL),
		keepLease: db.nameTables(keepLeaseSQL), claimsOf: db.nameTables(claimsOfSQL),
	}
}

// lockNamespaceSQL is the first statement of a batch. Its settings hold for the batch's
// transaction, also through PgBouncer. A batch that grants a claim is durable; others
// need not be, because the instances compare their connections with the store.
//
// The claims come and go, so the planner knows little of them. Only index scans keep their
// speed when a table grows under a plan that connections keep. Without a generic plan,
// PostgreSQL plans statements with an array anew each time.
const lockNamespaceSQL = `
WITH bounds AS MATERIALIZED (
    SELECT set_config('lock_timeout', '2s', true), set_config('statement_timeout', '4s', true),
           set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
           set_config('plan_cache_mode', 'force_generic_plan', true),
           CASE WHEN NOT $2::boolean THEN set_config('synchronous_commit', 'off', true) END)
SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0)) FROM bounds`

// durable says that a batch is durable also if it grants nothing.
type durable bool

// claimBatch is the statements that change claims of one namespace.
type claimBatch struct {
	store *ClaimStore
	queue pgx.Batch
}

func (s *ClaimStore) newBatch(namespace string, d durable) *claimBatch {
	b := &claimBatch{store: s}
	b.queue.Queue(lockNamespaceSQL, s.db.schema+"/"+namespace, bool(d))
	return b
}

// moved is what the removal of claims has changed.
type moved struct {
	granted []uuid.UUID
	removed []engine.ClaimInfo // only as far as the statement returns them
}

// removeClaims removes claims, and lets those that waited for them look for others.
func (b *claimBatch) removeClaims(into *moved, statement string, args ...any) {
	b.queue.Queue(statement, args...).Query(func(rows pgx.Rows) error {
		if err := rows.Err(); err != nil {
			return err // a refused statement has no columns
		}
		*into = moved{}
		var c engine.ClaimInfo
		var granted bool
		var paths [][]byte
		var writes []bool
		dest := []any{
			(*[16]byte)(&c.ID), &granted, nil,
			(*[16]byte)(&c.Instance), &c.Number, &c.Namespace, &c.Owner, &c.Abandon, (*utcTime)(&c.HeldAt), &paths, &writes,
		}
		_, err := pgx.ForEachRow(rows, dest[:len(rows.FieldDescriptions())], func() error {
			if granted {
				into.granted = append(into.granted, c.ID)
				return nil
			}
			c.Held, c.Resources = !c.HeldAt.IsZero(), decodeResources(paths, writes)
			into.removed = append(into.removed, c)
			return nil
		})
		return err
	})
}

func (b *claimBatch) send(ctx context.Context, op string) error {
	return b.store.db.write(ctx, b.store.db.callers, op, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.SendBatch(ctx, &b.queue).Close()
	})
}

// latestConflict is the latest of the earlier claims in the namespace $1 that conflict with
// the resources mine. For each resource it looks at the path and at those that it begins
// with, one after another, and then at the range of paths that begin with it. A read looks
// only at writes.
func latestConflict(mine, earlier string) string {
	return `(
        SELECT max(found.number)
          FROM ` + mine + ` CROSS JOIN LATERAL (
               SELECT (SELECT r.number FROM {schema}.claim_resource r
                        WHERE r.namespace = $1::text AND r.path = substring(mine.path FROM 1 FOR cut)
                          AND r.write = mode.write AND ` + earlier + `
                        ORDER BY r.number DESC LIMIT 1) AS number
                 FROM unnest(mine.cuts) cut CROSS JOIN (VALUES (true), (false)) mode(write)
                WHERE mode.write OR mine.write
               UNION ALL
               SELECT max(r.number) FROM {schema}.claim_resource r
                WHERE r.namespace = $1::text AND r.path > mine.path AND r.path < mine.path || '\xff'::bytea
                  AND (r.write OR mine.write) AND ` + earlier + `) found)`
}

// makeDurable turns the commit of a batch durable again.
const makeDurable = `set_config('synchronous_commit', NULL, true)`

// storeClaimSQL stores a claim, held or waiting, unless the instance has no lease or the
// claim is stored already. It returns its place.
var storeClaimSQL = `
WITH leased AS MATERIALIZED (
    SELECT FROM {schema}.instance i WHERE i.id = $3::uuid AND i.ended_at IS NULL AND i.lease_until > clock_timestamp()),
next AS (
    INSERT INTO {schema}.namespace AS n (name, last_number)
    SELECT $1::text, 1 FROM leased WHERE NOT EXISTS (SELECT FROM {schema}.claim c WHERE c.id = $2::uuid)
    ON CONFLICT ON CONSTRAINT namespace_pkey DO UPDATE SET last_number = n.last_number + 1
    RETURNING n.last_number AS number),
asked AS MATERIALIZED (
    SELECT r.position, r.write, r.path, ARRAY(
           SELECT cut::smallint FROM generate_series(0, length(r.path)) cut
            WHERE CASE WHEN cut = 0 THEN true ELSE get_byte(r.path, cut - 1) = 0 END ORDER BY cut) AS cuts
      FROM unnest($7::bytea[], $8::boolean[]) WITH ORDINALITY r(path, write, position)),
placed AS MATERIALIZED (
    SELECT next.number, clock_timestamp() AS at, ` + latestConflict(`asked mine`, `r.number < next.number`) + ` AS latest FROM next),
resources AS (
    INSERT INTO {schema}.claim_resource (number, position, write, namespace, path, cuts)
    SELECT p.number, a.position, a.write, $1::text, a.path, a.cuts FROM placed p CROSS JOIN asked a),
stored AS (
    INSERT INTO {schema}.claim (id, instance, number, waits_for, queued_at, held_at, abandon, resources, namespace, owner)
    SELECT $2::uuid, $3::uuid, p.number, p.latest, p.at, CASE WHEN p.latest IS NULL THEN p.at END, $4::interval, $5::integer, $1::text, $6::text
      FROM placed p
    RETURNING number, held_at)
SELECT s.number, s.held_at IS NOT NULL, CASE WHEN s.held_at IS NOT NULL THEN ` + makeDurable + ` END FROM stored s
UNION ALL
SELECT c.number, c.held_at IS NOT NULL, NULL FROM {schema}.claim c WHERE c.id = $2::uuid`

// Enqueue implements engine.ClaimStore.
func (s *ClaimStore) Enqueue(ctx context.Context, q engine.Claim) (engine.Place, error) {
	paths, writes := encodeResources(q.Resources)
	var place engine.Place
	found := false
	b := s.newBatch(q.Namespace, false)
	args := []any{q.Namespace, q.ID, q.Instance, q.Abandon, len(q.Resources), q.Owner, paths, writes}
	b.queue.Queue(s.store, args...).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&place.Number, &place.Held, nil)
		found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err := b.send(ctx, "storing a claim"); err != nil {
		return engine.Place{}, err
	}
	if !found {
		return engine.Place{}, fault.New(fault.Unavailable, "The lease of this instance has ended: try again")
	}
	return place, nil
}

// Removals differ in which claims are gone, and in what they say of them.
var (
	removeSQL        = removalSQL(`c.namespace = $1::text AND c.id = $2::uuid`, ``, moveSQL)
	removeWaitingSQL = removalSQL(`c.namespace = $1::text AND c.id = $2::uuid AND (c.held_at IS NULL OR c.abandon <= interval '0')`, ``, moveSQL)
	removeForcedSQL  = removalSQL(`c.namespace = $1::text AND c.id = $2::uuid`, `
noted AS (
    INSERT INTO {schema}.forced_release (fence, namespace, name, owner, forced_by, reason)
    SELECT number, namespace, $4::text, owner, $5::text, $6::text FROM gone),`, moveSQL+`
UNION ALL
SELECT g.id, false, NULL FROM gone g`)
	removeEndedSQL = removalSQL(`c.namespace = $1::text AND c.id = ANY($2::text::uuid[])
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

const moveSQL = `
SELECT m.id, true, m.durable FROM moved m WHERE m.held_at IS NOT NULL`

// leaseOver is when a claim c with a connection has ended with the lease of its instance i.
const leaseOver = `i.ended_at IS NOT NULL AND c.ends_at IS NULL AND (c.held_at IS NULL OR i.ended_at + c.abandon <= clock_timestamp())`

// removalSQL removes claims of the namespace $1. Each claim that waited for one of them waits
// for another one, or is held. $3 is the caller's instance.
func removalSQL(condition, parts, report string) string {
	return `
WITH gone AS (DELETE FROM {schema}.claim c WHERE ` + condition + ` RETURNING c.id, c.instance, c.number, c.namespace, c.owner, c.abandon, c.held_at),` + parts + `
freed AS (
    DELETE FROM {schema}.claim_resource r USING gone g WHERE r.namespace = $1::text AND r.number = g.number
    RETURNING r.number, r.position, r.path, r.write),
placed AS MATERIALIZED (
    SELECT w.id, ` + latestConflict(
		`(SELECT o.path, o.write, o.cuts FROM {schema}.claim_resource o WHERE o.namespace = $1::text AND o.number = w.number) mine`,
		`r.number < w.number AND r.number NOT IN (SELECT h.number FROM gone h)`) + ` AS latest
      FROM gone g JOIN {schema}.claim w ON w.namespace = $1::text AND w.waits_for = g.number
     WHERE w.number NOT IN (SELECT h.number FROM gone h)),
moved AS (
    UPDATE {schema}.claim c
       SET waits_for = p.latest, held_at = CASE WHEN p.latest IS NULL THEN clock_timestamp() END,
           is_new = p.latest IS NULL AND c.instance <> $3::uuid
      FROM placed p WHERE c.id = p.id
    RETURNING c.id, c.instance, c.number, c.namespace, c.owner, c.abandon, c.held_at, CASE WHEN c.held_at IS NOT NULL THEN ` + makeDurable + ` END AS durable)` + report
}

// Withdraw implements engine.ClaimStore.
func (s *ClaimStore) Withdraw(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) ([]uuid.UUID, error) {
	var m moved
	b := s.newBatch(namespace, false)
	b.removeClaims(&m, s.remove, namespace, id, caller)
	err := b.send(ctx, "withdrawing a claim")
	return m.granted, err
}

const endConnectionSQL = `
UPDATE {schema}.claim c SET ends_at = clock_timestamp() + c.abandon
 WHERE c.namespace = $1::text AND c.id = $2::uuid AND c.held_at IS NOT NULL AND c.abandon > interval '0' AND c.ends_at IS NULL`

// Disconnect implements engine.ClaimStore. It is durable: a held claim without the note of
// its end is withdrawn at once, when its instance misses the connection.
func (s *ClaimStore) Disconnect(ctx context.Context, caller uuid.UUID, namespace string, id uuid.UUID) ([]uuid.UUID, error) {
	var m moved
	b := s.newBatch(namespace, true)
	b.queue.Queue(s.end, namespace, id)
	b.removeClaims(&m, s.removeWaiting, namespace, id, caller)
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
	b := s.newBatch(namespace, true)
	b.removeClaims(&m, s.removeForced, namespace, id, caller, engine.FormatResources(resources), n.By, n.Reason)
	if err := b.send(ctx, "releasing a claim by force"); err != nil {
		return nil, err
	}
	if len(m.removed) == 0 {
		return nil, errNoClaim()
	}
	return m.granted, nil
}

func errNoClaim() error { return fault.New(fault.NotFound, "There is no such claim") }

const resourcesSQL = `
SELECT array_agg(r.path ORDER BY r.position), array_agg(r.write ORDER BY r.position)
  FROM {schema}.claim c JOIN {schema}.claim_resource r ON r.namespace = c.namespace AND r.number = c.number
 WHERE c.namespace = $1::text AND c.id = $2::uuid`

// resources returns what a claim has. They never change. Fault: NotFound.
func (s *ClaimStore) resources(ctx context.Context, namespace string, id uuid.UUID) ([]engine.Resource, error) {
	var paths [][]byte
	var writes []bool
	err := s.db.readRow(ctx, s.db.callers, "reading a claim", s.db.nameTables(resourcesSQL), []any{namespace, id}, []any{&paths, &writes})
	switch {
	case err != nil:
		return nil, err
	case paths == nil:
		return nil, errNoClaim()
	}
	return decodeResources(paths, writes), nil
}

const (
	// endLeasesSQL waits for a KeepLease that is under way, and judges the lease anew then.
	endLeasesSQL = `
UPDATE {schema}.instance i SET ended_at = i.lease_until WHERE i.ended_at IS NULL AND i.lease_until <= clock_timestamp()`

	findEndedSQL = `
SELECT c.namespace, c.id FROM {schema}.claim c WHERE c.ends_at <= clock_timestamp()
UNION ALL
SELECT c.namespace, c.id FROM {schema}.instance i JOIN {schema}.claim c ON c.instance = i.id WHERE ` + leaseOver
)

// Settle implements engine.ClaimStore. It is one round trip if no claim has ended.
func (s *ClaimStore) Settle(ctx context.Context, caller uuid.UUID) (granted []uuid.UUID, ended []engine.ClaimInfo, err error) {
	over, err := s.listEnded(ctx)
	if err != nil {
		return nil, nil, err
	}
	for namespace, ids := range over {
		var m moved
		b := s.newBatch(namespace, false)
		b.removeClaims(&m, s.removeEnded, namespace, joinIDs(ids), caller)
		if err := b.send(ctx, "settling claims"); err != nil {
			return granted, ended, err
		}
		granted, ended = append(granted, m.granted...), append(ended, m.removed...)
	}
	return granted, ended, nil
}

// listEnded ends leases whose time is over, and returns the claims that have ended, by
// namespace.
func (s *ClaimStore) listEnded(ctx context.Context) (map[string][]uuid.UUID, error) {
	var over map[string][]uuid.UUID
	var batch pgx.Batch
	batch.Queue(lazyBounds)
	batch.Queue(s.endLeases)
	batch.Queue(s.findEnded).Query(func(rows pgx.Rows) error {
		over = map[string][]uuid.UUID{}
		var namespace string
		var id uuid.UUID
		_, err := pgx.ForEachRow(rows, []any{&namespace, &id}, func() error {
			over[namespace] = append(over[namespace], id)
			return nil
		})
		return err
	})
	err := s.db.write(ctx, s.db.callers, "looking for ended claims", func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.SendBatch(ctx, &batch).Close()
	})
	return over, err
}
