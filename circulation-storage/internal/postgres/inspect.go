package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/doctor"
	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/schemas/fault"
)

// A role without pg_monitor sees other roles' connections, but not of what kind they are. Those of clients
// have a database and a user.
const inspectServerSQL = `
SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
       (SELECT coalesce(string_agg(name, ', ' ORDER BY name), '') FROM pg_settings
         WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'),
       current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
       (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
       (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL),
       current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer,
       (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL),
       pg_backend_pid(), clock_timestamp()`

// InspectServer reads the state of the server. It fails if the server is read-only, too. The text of
// that error is safe to show.
func (db *DB) InspectServer(ctx context.Context) (doctor.Server, error) {
	var s doctor.Server
	if _, err := db.conns.CheckServer(ctx); err != nil {
		return s, err
	}
	conn, err := db.conns.Ordinary.Acquire(ctx)
	if err != nil {
		return s, toFault("reading the state of the server", err)
	}
	defer conn.Release()
	var backend uint32
	var now time.Time
	begin := time.Now()
	err = conn.QueryRow(ctx, inspectServerSQL).Scan(&s.Version, &s.VersionNumber, &s.Unsafe, &s.Standbys, &s.Commits,
		&s.Confirming, &s.Hidden, &s.Connections, &s.OpenConnections, &backend, &now)
	s.Uncertain = time.Since(begin) / 2
	s.Ahead = now.Sub(begin.Add(s.Uncertain))
	s.Pooled = backend != conn.Conn().PgConn().PID() // a pooler makes up the one that it sends
	return s, toFault("reading the state of the server", err)
}

// PreparesStatements reports whether statements are prepared, which the transaction mode of PgBouncer does not allow.
func (db *DB) PreparesStatements() bool {
	mode := db.conns.Ordinary.Config().ConnConfig.DefaultQueryExecMode
	return mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol
}

// The loans of the last seconds may not be in the history yet.
const inspectTenantSQL = `
SELECT (SELECT count(*) FROM {schema}.loan_history h
         WHERE {schema}.record_time(h.jsonb->>'createdDate') BETWEEN statement_timestamp() - $2::interval AND statement_timestamp() - interval '10 s'
           AND h.jsonb->>'operation' = 'I'
           AND NOT EXISTS (SELECT FROM {schema}.check_out_history c
                            WHERE c.loan_id = h.loan_id AND c.ended_date > statement_timestamp() - interval '25 hours')),
       (SELECT count(*) FROM {schema}.check_out_lock WHERE creation_date + ttl_ms * interval '1 ms' < clock_timestamp() - $3::interval),
       (SELECT count(*) FROM (SELECT FROM {schema}.outbox WHERE refused IS NULL LIMIT $1::bigint) waiting),
       coalesce((SELECT clock_timestamp() - creation_date FROM {schema}.outbox WHERE refused IS NULL ORDER BY id LIMIT 1), interval '0'),
       (SELECT count(*) FROM (SELECT FROM {schema}.outbox WHERE refused IS NOT NULL LIMIT $1::bigint) refused)`

// InspectTenant reads the state of the tenant in ctx, whose schema is s. It reads no more of one that is not
// served.
func (db *DB) InspectTenant(ctx context.Context, s readiness.Schema, own doctor.Settings) (doctor.Tenant, error) {
	t := doctor.Tenant{Schema: s}
	if s.Problem() != "" {
		return t, nil
	}
	state, err := NewLockSettingsStore(db).State(ctx)
	if err != nil {
		return t, err
	}
	t.Entry, t.Announced = state.Entry, state.EnvironmentOnMs != nil
	if t.OverLimit, err = db.CountOverLimit(ctx); err != nil {
		return t, err
	}
	err = db.readRow(ctx, db.conns.Ordinary, "reading the state of a tenant", inspectTenantSQL,
		[]any{maxCountedEvents, min(own.History, 24*time.Hour), time.Hour + own.Sweep},
		&t.Unfenced, &t.Unswept, &t.Events, &t.OldestEvent, &t.Refused)
	return t, err
}

// FindPatron returns the id of the patron with a barcode, without regard to case. Fault: NotFound.
func (db *DB) FindPatron(ctx context.Context, barcode string) (id uuid.UUID, err error) {
	err = db.readRow(ctx, db.conns.Ordinary, "looking for a patron", `SELECT id FROM (`+patronByBarcode+`) AS patron LIMIT 1`, []any{barcode}, &id)
	return id, explainNoRow(err, fault.New(fault.NotFound, "No patron has the barcode %q", barcode))
}

// Gauges are numbers of one tenant for the metrics.
type Gauges struct {
	HeldLocks  int           // outdated ones do not count
	OldestLock time.Duration // the age of the oldest held lock
	Events     int           // that wait, maxCountedEvents at most
}

// maxCountedEvents bounds the work for a scrape. So many events are a reader that is away.
const maxCountedEvents = 10_000

var gaugesSQL = `
SELECT count(*), coalesce(max(clock_timestamp() - l.creation_date), interval '0'),
       (SELECT count(*) FROM (SELECT FROM {schema}.outbox WHERE refused IS NULL LIMIT $1::bigint) waiting)
  FROM {schema}.check_out_lock l WHERE NOT ` + own

// ReadGauges reads the numbers of the tenant.
func (db *DB) ReadGauges(ctx context.Context) (Gauges, error) {
	var g Gauges
	err := db.count(ctx, "reading gauges", gaugesSQL, []any{maxCountedEvents}, &g.HeldLocks, &g.OldestLock, &g.Events)
	return g, err
}

// maxRecounted bounds the work of CountOverLimit, and recountedFor how far it goes back.
const (
	maxRecounted = 10_000
	recountedFor = time.Hour
)

// overLimit finds the patrons of the loans lent in the last $1, the newest $2 of them, of which one exceeded a
// limit that its check-out counted. Loans that came later do not count, because staff may lend beyond a limit.
// Neither do limits on what becomes overdue, recalled or lost.
const overLimit = `
SELECT DISTINCT l.user_id
  FROM (SELECT loan_id FROM {schema}.loan_history h
         WHERE {schema}.record_time(h.jsonb->>'createdDate') > statement_timestamp() - $1::interval AND h.jsonb->>'operation' = 'I'
         ORDER BY {schema}.record_time(h.jsonb->>'createdDate') DESC LIMIT $2::bigint) lent
  JOIN {schema}.loan l ON l.id = lent.loan_id AND l.is_open
 CROSS JOIN jsonb_array_elements(l.limits) AS w
 WHERE NOT w ?| ARRAY['overdueMinutes', 'recalled', 'lost']
   AND (w->>'max')::bigint < (
       SELECT count(*) FROM {schema}.loan o JOIN {schema}.item i ON i.id = o.item_id
        WHERE o.is_open AND o.user_id = l.user_id AND (o.lent_date > l.lent_date) IS NOT TRUE AND ` + countedByLimit + `
          AND (w->>'materialTypeId' IS NULL OR i.material_type_id = (w->>'materialTypeId')::uuid)
          AND (w->>'loanTypeId' IS NULL OR ` + loanTypeInForce + ` = (w->>'loanTypeId')::uuid))`

const countOverLimitSQL = `SELECT count(*) FROM (` + overLimit + `) over`

// CountOverLimit counts the patrons of the tenant with a loan of the last hour beyond a limit that its
// check-out counted.
func (db *DB) CountOverLimit(ctx context.Context) (int, error) {
	var n int
	err := db.count(ctx, "counting patrons over their limit", countOverLimitSQL, []any{recountedFor, maxRecounted}, &n)
	return n, err
}
