package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/time/rate"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// ClaimStore implements engine.ClaimStore on the tables claim, claim_resource,
// removed_claim, namespace and instance.
//
// A waiting claim names in waits_for the latest earlier claim that it conflicts with. When
// that one goes, the claim is placed: it looks for another, and is held if there is none. So
// of many that wait for one path, each release looks at one.
//
// One transaction places so many claims at most. The others still wait for the number of the
// claim that has gone, which stands in removed_claim until Settle has placed them.
//
// What changes claims is one batch, in one round trip and one transaction. It first locks the
// namespace. PostgreSQL runs each statement as soon as it has arrived. A small batch arrives as a
// whole, so a process that freezes holds no namespace. A large one may arrive in parts: a process
// that freezes between them holds the namespace until it wakes up or ends.
type ClaimStore struct {
	db        *DB
	atOnce    int            // how many claims one transaction removes, and places, at most
	calls     namespaceCalls // that change claims or namespaces
	failing   failingLast    // the namespaces that could not be settled
	repairing rate.Sometimes
	// statements with atOnce
	removeSQL, removeWaitingSQL, removeEndedSQL, removeForcedSQL, placeLeftSQL string
}

var _ engine.ClaimStore = (*ClaimStore)(nil)

// maxAtOnce is ClaimStore.atOnce. The prefixes of those claims are at most those of the
// largest claim. So a transaction takes some 10 ms, and 50 ms at most for the largest claims,
// however many wait.
const maxAtOnce = 200

// NewClaimStore returns the claims in db.
func NewClaimStore(db *DB) *ClaimStore { return newClaimStore(db, maxAtOnce) }

func newClaimStore(db *DB, atOnce int) *ClaimStore {
	limit := strings.NewReplacer("{atOnce}", strconv.Itoa(atOnce), "{maxPrefixes}", strconv.Itoa(engine.MaxPrefixes)).Replace
	return &ClaimStore{
		db: db, atOnce: atOnce, repairing: rate.Sometimes{Interval: repairInterval},
		calls: namespaceCalls{places: map[string]*namespacePlaces{}}, failing: failingLast{failed: map[string]failedSettling{}},
		removeSQL: limit(removeSQL), removeWaitingSQL: limit(removeWaitingSQL), removeEndedSQL: limit(removeEndedSQL),
		removeForcedSQL: limit(removeForcedSQL), placeLeftSQL: limit(placeLeftSQL),
	}
}

// lockNamespaceSQL is the first statement of a batch. Its settings hold for the batch's
// transaction, also through PgBouncer. A batch that grants a claim is durable; others
// need not be, because the instances compare their connections with the store.
//
// The claims come and go, so the planner knows little of them. Only index scans keep their
// speed when a table grows under a plan that connections keep. Without a generic plan,
// PostgreSQL plans statements with an array anew each time. It expects many more prefixes than
// a path has, and would compile the statements for them, which takes 0.1 s.
const lockNamespaceSQL = `
WITH bounds AS MATERIALIZED (
    SELECT set_config('lock_timeout', $3::text, true), set_config('statement_timeout', '4s', true),
           set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
           set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true),
           CASE WHEN NOT $2::boolean THEN set_config('synchronous_commit', 'off', true) END)
SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0)) FROM bounds`

// callWait is how long a call waits for its namespace.
const callWait = 2 * time.Second

// claimBatch is the statements that change claims of one namespace.
type claimBatch struct {
	store     *ClaimStore
	namespace string
	adds      bool // a claim
	queue     pgx.Batch
}

// newBatch begins with the lock of the namespace, which it waits for. A durable batch is so also if it
// grants nothing.
func (s *ClaimStore) newBatch(namespace string, durable bool, wait time.Duration) *claimBatch {
	b := &claimBatch{store: s, namespace: namespace}
	b.queue.Queue(lockNamespaceSQL, s.db.schema+"/"+namespace, durable, strconv.FormatInt(wait.Milliseconds(), 10))
	return b
}

// moved is what a statement has changed.
type moved struct {
	granted []uuid.UUID
	removed []engine.ClaimInfo // only as far as the statement returns them
}

// moveClaims runs a statement that removes or places claims.
func (b *claimBatch) moveClaims(into *moved, statement string, args ...any) {
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
			(*[16]byte)(&c.Instance), &c.Number, &c.Namespace, &c.Owner, &c.Abandon, (*database.UTCTime)(&c.HeldAt), &paths, &writes,
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
	db := b.store.db
	return b.store.calls.run(ctx, b.namespace, op, b.adds, func() error {
		return db.write(ctx, db.unreserved, op, func(ctx context.Context, conn *pgxpool.Conn) error {
			return db.sendBatch(ctx, conn, &b.queue)
		})
	})
}

// makeDurable turns the commit of a batch durable again.
const makeDurable = `set_config('synchronous_commit', NULL, true)`

// storeClaimSQL stores a claim, held or waiting, unless the instance has no lease or the
// claim is stored already. It returns its place.
var storeClaimSQL = `
WITH leased AS MATERIALIZED (
    SELECT FROM {schema}.instance i WHERE i.id = $3::uuid AND i.ended_at IS NULL AND i.lease_until > clock_timestamp()),
next AS (
    INSERT INTO {schema}.namespace AS n (name, last_number, used_at)
    SELECT $1::text, 1, clock_timestamp() FROM leased WHERE NOT EXISTS (SELECT FROM {schema}.claim c WHERE c.id = $2::uuid)
    ON CONFLICT ON CONSTRAINT namespace_pkey DO UPDATE SET last_number = n.last_number + 1, used_at = excluded.used_at
    RETURNING n.last_number AS number),
asked AS MATERIALIZED (
    SELECT * FROM unnest($7::bytea[], $8::boolean[], $9::bytea[]) WITH ORDINALITY r(path, write, key, position)),
placed AS MATERIALIZED (
    SELECT next.number, clock_timestamp() AS at, ` + latestConflict(`asked mine`, `r.number < next.number`) + ` AS latest FROM next),
resources AS (
    INSERT INTO {schema}.claim_resource (number, position, write, namespace, path, key)
    SELECT p.number, a.position, a.write, $1::text, a.path, a.key FROM placed p CROSS JOIN asked a),
stored AS (
    INSERT INTO {schema}.claim (id, instance, number, waits_for, queued_at, held_at, abandon, resources, prefixes, namespace, owner)
    SELECT $2::uuid, $3::uuid, p.number, p.latest, p.at, CASE WHEN p.latest IS NULL THEN p.at END, $4::interval,
           $5::integer, $10::integer, $1::text, $6::text
      FROM placed p
    RETURNING number, held_at)
SELECT s.number, s.held_at IS NOT NULL, CASE WHEN s.held_at IS NOT NULL THEN ` + makeDurable + ` END FROM stored s
UNION ALL
SELECT c.number, c.held_at IS NOT NULL, NULL FROM {schema}.claim c WHERE c.id = $2::uuid`

// Enqueue implements engine.ClaimStore.
func (s *ClaimStore) Enqueue(ctx context.Context, q engine.Claim) (engine.Place, error) {
	paths, writes, keys := encodeResources(q.Resources)
	var place engine.Place
	found := false
	b := s.newBatch(q.Namespace, false, callWait)
	b.adds = true
	args := []any{
		q.Namespace, q.ID, q.Instance, q.Abandon, len(q.Resources), q.Owner, paths, writes, keys, engine.CountPrefixes(q.Resources),
	}
	b.queue.Queue(storeClaimSQL, args...).QueryRow(func(row pgx.Row) error {
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
