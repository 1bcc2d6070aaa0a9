package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// Leases are durable. A primary whose synchronous standby does not confirm them may be an old one: then
// a new one ends the lease and gives the claims to others.
const (
	startLeaseSQL = `
WITH old AS (
    DELETE FROM {schema}.instance i WHERE i.ended_at < clock_timestamp() - interval '1 day'
       AND NOT EXISTS (SELECT FROM {schema}.claim c WHERE c.instance = i.id))
INSERT INTO {schema}.instance (id, lease_until, lease) SELECT $1::uuid, clock_timestamp() + $2::interval, $2::interval`

	keepLeaseSQL = `
UPDATE {schema}.instance i SET lease_until = clock_timestamp() + $2::interval, lease = $2::interval
 WHERE i.id = $1::uuid AND i.ended_at IS NULL AND i.lease_until > clock_timestamp()`

	endLeaseSQL = `
UPDATE {schema}.instance i SET ended_at = clock_timestamp()
 WHERE i.id = $1::uuid AND i.ended_at IS NULL AND i.lease_until > clock_timestamp()`
)

// leaseConnections are free while the callers of one class alone are too many, because a
// lost lease ends the connections of all clients.
func (s *ClaimStore) leaseConnections() connections {
	urgent := s.db.conns.Urgent.Stat()
	if urgent.AcquiredConns() == urgent.MaxConns() && !s.db.ordinary.areBusy() {
		return s.db.ordinary
	}
	return s.db.urgent
}

// StartLease implements engine.ClaimStore.
func (s *ClaimStore) StartLease(ctx context.Context, instance uuid.UUID, length time.Duration) error {
	_, err := s.db.exec(ctx, s.leaseConnections(), "starting the lease", bounds, startLeaseSQL, instance, length)
	return err
}

// KeepLease implements engine.ClaimStore.
func (s *ClaimStore) KeepLease(ctx context.Context, instance uuid.UUID, length time.Duration) error {
	changed, err := s.db.exec(ctx, s.leaseConnections(), "keeping the lease", bounds, keepLeaseSQL, instance, length)
	if err == nil && changed == 0 {
		return fault.New(fault.NotFound, "The lease has ended")
	}
	return err
}

// EndLease implements engine.ClaimStore.
func (s *ClaimStore) EndLease(ctx context.Context, instance uuid.UUID) error {
	_, err := s.db.exec(ctx, s.leaseConnections(), "ending the lease", bounds, endLeaseSQL, instance)
	return err
}

const newGrantsSQL = `SELECT c.id FROM {schema}.claim c WHERE c.instance = $1::uuid AND c.is_new`

// NewGrants implements engine.ClaimStore.
func (s *ClaimStore) NewGrants(ctx context.Context, instance uuid.UUID) ([]uuid.UUID, error) {
	return readRows(ctx, s.db, s.db.unreserved, "reading new grants", newGrantsSQL, []any{instance}, pgx.RowTo[uuid.UUID])
}

// noteGrantsSQL changes each row, so that its COMMIT waits for the standby like that of the grant.
const noteGrantsSQL = `
UPDATE {schema}.claim c SET is_new = false
 WHERE c.id = ANY($1::text::uuid[]) AND c.held_at IS NOT NULL AND c.ends_at IS NULL RETURNING c.id`

// NoteGrants implements engine.ClaimStore.
func (s *ClaimStore) NoteGrants(ctx context.Context, ids []uuid.UUID) (held []uuid.UUID, err error) {
	err = s.db.write(ctx, s.db.unreserved, "noting new grants", func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		statement := s.db.nameSchema(conn, noteGrantsSQL)
		held, err = database.CollectRows(ctx, conn, bounds, statement, []any{joinIDs(ids)}, pgx.RowTo[uuid.UUID])
		return err
	})
	return held, err
}

// joinIDs returns ids as the text of an array, because connections in exec mode know no
// type for a slice of them.
func joinIDs(ids []uuid.UUID) string {
	return "{" + strings.Join(convert.All(ids, uuid.UUID.String), ",") + "}"
}

const claimsOfSQL = `
SELECT c.id, c.namespace, c.held_at IS NOT NULL FROM {schema}.claim c WHERE c.instance = $1::uuid AND c.ends_at IS NULL AND c.id > $2::uuid
 ORDER BY c.id LIMIT $3::integer`

// ClaimsOf implements engine.ClaimStore. It allocates nothing for a claim, because all claims
// are read each second.
func (s *ClaimStore) ClaimsOf(ctx context.Context, instance, after uuid.UUID, page []engine.ClaimState) ([]engine.ClaimState, error) {
	var c engine.ClaimState
	dest := []any{(*[16]byte)(&c.ID), (*sameText)(&c.Namespace), &c.Held}
	found := 0
	err := s.db.read(ctx, s.db.unreserved, func(conn *pgxpool.Conn) error {
		found = 0
		_, err := database.CollectRows(ctx, conn, claimReadBounds, s.db.nameSchema(conn, claimsOfSQL), []any{instance, after, len(page)}, func(row pgx.CollectableRow) (struct{}, error) {
			err := row.Scan(dest...)
			page[found] = c
			found++
			return struct{}{}, err
		})
		return err
	})
	return page[:found], toFault("comparing claims", err)
}

// sameText reads a text that is mostly that of the row before.
type sameText string

// ScanBytes implements pgtype.BytesScanner.
func (t *sameText) ScanBytes(text []byte) error {
	if string(text) != string(*t) {
		*t = sameText(text)
	}
	return nil
}

const statsSQL = `
SELECT n.last_number,
       count(c.id) FILTER (WHERE c.held_at IS NULL), count(c.id) FILTER (WHERE c.held_at IS NOT NULL),
       coalesce(sum(c.resources) FILTER (WHERE c.held_at IS NULL), 0), coalesce(sum(c.resources) FILTER (WHERE c.held_at IS NOT NULL), 0),
       (SELECT count(DISTINCT r.path) FROM {schema}.claim_resource r WHERE r.namespace = $1::text)
  FROM {schema}.namespace n LEFT JOIN {schema}.claim c ON c.namespace = n.name
 WHERE n.name = $1::text GROUP BY n.last_number`

// Stats implements engine.ClaimStore.
func (s *ClaimStore) Stats(ctx context.Context, namespace string) (engine.NamespaceStats, error) {
	var n engine.NamespaceStats
	err := s.db.readRow(ctx, s.db.ordinary, "counting claims", statsSQL, []any{namespace},
		[]any{&n.LastNumber, &n.Waiting, &n.Held, &n.WaitingResources, &n.HeldResources, &n.Paths})
	if isNoRow(err) {
		return engine.NamespaceStats{}, fault.New(fault.NotFound, "Namespace not found")
	}
	return n, err
}

// listClaimsSQL reads only the resources that are shown, because a claim may have 64 KiB of them.
// The text of a resource has its mode, so it is longer than the stored path by 5 bytes or more. A process
// that died has noted no ends.
const listClaimsSQL = `
SELECT c.id, c.namespace, c.instance, c.abandon, c.owner, c.number, c.queued_at, c.held_at,
       coalesce(c.ends_at, (SELECT least(i.ended_at, i.lease_until) + c.abandon FROM {schema}.instance i
                             WHERE i.id = c.instance AND c.held_at IS NOT NULL AND least(i.ended_at, i.lease_until) <= clock_timestamp())),
       coalesce(c.waits_for, 0), r.paths, r.writes
  FROM (SELECT * FROM {schema}.claim c WHERE $1::text IN ('', c.namespace) AND c.number > 0 ORDER BY c.namespace, c.number LIMIT $2::bigint) c
 CROSS JOIN LATERAL (
       SELECT array_agg(r.path ORDER BY r.position) AS paths, array_agg(r.write ORDER BY r.position) AS writes
         FROM (SELECT r.*, sum(length(r.path) + 5) OVER (ORDER BY r.position) - length(r.path) - 5 AS before
                 FROM {schema}.claim_resource r WHERE r.namespace = c.namespace AND r.number = c.number
                ORDER BY r.position LIMIT $3::bigint / 5) r
        WHERE r.before <= $3::bigint) r
 ORDER BY c.namespace, c.number`

// ListClaims implements engine.ClaimStore.
func (s *ClaimStore) ListClaims(ctx context.Context, namespace string, limit int) ([]engine.ClaimInfo, error) {
	return readRows(ctx, s.db, s.db.ordinary, "listing claims", listClaimsSQL, []any{namespace, limit, engine.MaxFormat},
		func(row pgx.CollectableRow) (c engine.ClaimInfo, err error) {
			var paths [][]byte
			var writes []bool
			err = row.Scan(&c.ID, &c.Namespace, &c.Instance, &c.Abandon, &c.Owner, &c.Number,
				(*database.UTCTime)(&c.QueuedAt), (*database.UTCTime)(&c.HeldAt), (*database.UTCTime)(&c.EndsAt), &c.WaitsFor, &paths, &writes)
			c.Held, c.Resources = !c.HeldAt.IsZero(), decodeResources(paths, writes)
			return c, err
		})
}
