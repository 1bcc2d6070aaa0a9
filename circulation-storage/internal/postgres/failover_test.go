package postgres_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// fill opens n connections of a pool and releases them.
func (l harness) fill(pool *pgxpool.Pool, n int) {
	l.t.Helper()
	for range n {
		c, err := pool.Acquire(l.ctx())
		if err != nil {
			l.t.Fatal(err)
		}
		defer c.Release()
	}
}

// endSessions ends all sessions of the desk's pools except its own. It first asks all of them, because
// PostgreSQL waits for each one by itself, in steps of 100 ms.
func (l harness) endSessions() {
	l.t.Helper()
	for _, wait := range []time.Duration{0, 10 * time.Second} {
		l.exec(`SELECT pg_terminate_backend(pid, $1::bigint) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`, wait.Milliseconds())
	}
}

func TestDB_WorksAfterItsSessionsWereEnded(t *testing.T) {
	t.Parallel()
	l, server := newHarnessOnOwnServer(t, nil)
	user := uuid.New()
	id := l.lock(user)
	c := l.withLock(uuid.New(), l.addItem("Available", ""))
	admin := l.reach(server.URL()) // its session stays
	for _, tt := range []struct {
		name string
		call func() error
	}{
		{name: "a read of a lock runs once more", call: func() error { _, err := l.locks.Get(l.ctx(), id); return err }},
		{name: "a look at a lock runs once more", call: func() error {
			_, err := l.locks.Peek(l.ctx(), lock.Request{UserID: user, TTL: time.Hour})
			return err
		}},
		{
			name: "a list of locks runs once more",
			call: func() error { _, _, err := l.locks.List(l.ctx(), lock.Filter{Limit: 1}); return err },
		},
		{name: "a read of facts runs once more", call: func() error {
			_, err := l.commits.ReadCheckOutFacts(l.ctx(), schemas.CheckOutSubjects{})
			return err
		}},
		{name: "the settings are read once more", call: func() error { _, err := l.settings.State(l.ctx()); return err }},
		{name: "a commit begins once more", call: func() error { _, _, err := l.send(c); return err }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.fill(l.db.UrgentPool(), 8)
			l.fill(l.db.Pool(), 8)
			l.db.AllowReset()
			admin.endSessions()
			if err := tt.call(); err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDB_NeverRunsAnAcquireTwice(t *testing.T) {
	t.Parallel()
	l, server := newHarnessOnOwnServer(t, nil)
	admin := l.reach(server.URL())
	var err error
	for range 10 { // a pool on a slow host may have checked its connections first
		l.fill(l.db.UrgentPool(), 8)
		admin.endSessions()
		_, _, err = l.locks.Acquire(l.ctx(), lock.Request{UserID: uuid.New(), TTL: time.Hour})
		if fault.Is(err, fault.Unavailable) { // it may have been granted: the caller asks again
			return
		}
	}
	t.Errorf("got %v each time, want %s", err, fault.Unavailable)
}

func TestDB_OnAServerThatCannotWrite(t *testing.T) {
	t.Parallel()
	l, _ := newHarnessOnOwnServer(t, nil)
	c := l.withLock(uuid.New(), l.addItem("Available", ""))
	l.exec(`ALTER SYSTEM SET default_transaction_read_only = on`)
	l.exec(`SELECT pg_reload_conf()`)
	l.untilCount(1, `SELECT count(*) WHERE current_setting('default_transaction_read_only') = 'on'`)
	on := schemas.LockSettingsChange{Value: []byte(`{"checkOutLockFeatureEnabled":true}`)}
	for name, call := range map[string]func() error{
		"an acquire": func() error {
			_, _, err := l.locks.Acquire(l.ctx(), lock.Request{UserID: uuid.New(), TTL: time.Hour})
			return err
		},
		"a release":             func() error { _, err := l.locks.Release(l.ctx(), c.lock); return err },
		"a commit":              func() error { _, _, err := l.send(c); return err },
		"settling a check-out":  func() error { _, err := l.commits.DurableLoan(l.ctx(), c.loan); return err },
		"giving a check-out up": func() error { _, err := l.commits.SettleCheckOut(l.ctx(), c.loan); return err },
		"a change of settings":  func() error { _, err := l.settings.Change(l.ctx(), on); return err },
		"a durable release":     func() error { _, err := l.locks.ReleaseDurably(l.ctx(), c.lock); return err },
		"a key lease": func() error {
			_,
				err := postgres.NewKeyLeaseStore(l.db).Lease(l.ctx(), ask("k"))
			return err
		},
		"writing the rules": func() error {
			return postgres.NewRecordStore(l.db, func() {}).SetRules(l.ctx(), "x", false)
		},
		"a check-in":            func() error { _, err := l.takeBack(c.item, 1); return err },
		"installing the tenant": func() error { return l.db.Install(l.ctx(), pgtest.Tenant(t)) },
	} {
		if err := call(); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v, want %s", name, err, fault.Unavailable)
		}
	}
	if _, err := l.locks.Get(l.ctx(), c.lock); err != nil {
		t.Errorf("a plain read: %v", err)
	}
	// A failover to a server that can write: fresh connections lead there.
	l.exec(`SET default_transaction_read_only = off`)
	l.exec(`ALTER SYSTEM RESET default_transaction_read_only`)
	l.exec(`SELECT pg_reload_conf()`)
	ctx, cancel := context.WithTimeout(l.ctx(), time.Minute)
	defer cancel()
	for {
		_, outcome, err := l.send(c)
		if outcome == commit.Committed {
			return
		}
		if !fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			t.Fatalf("with a server that can write: %s, %v", outcome, err)
		}
	}
}

func TestOpen_KeepsConnectionsForLending(t *testing.T) {
	t.Parallel()
	l := newHarness(t).reach(pgtest.URL(t))
	ctx, cancel := context.WithTimeout(l.ctx(), time.Minute)
	defer cancel()
	keys, req := postgres.NewKeyLeaseStore(l.db), ask("k")
	c := l.withLock(uuid.New(), l.addItem("Available", ""))
	checkOut, err := commit.ParseCheckOut(c.body())
	if err != nil {
		t.Fatal(err)
	}
	for range l.db.Pool().Config().MaxConns { // as slow queries of records
		held, err := l.db.Pool().Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release()
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{name: "the settings", do: func() error { _, err := l.settings.State(ctx); return err }},
		{name: "leasing a key", do: func() error { _, err := keys.Lease(ctx, req); return err }},
		{name: "looking at a key", do: func() error { _, err := keys.Running(ctx, req); return err }},
		{name: "renewing a key", do: func() error { return keys.Renew(ctx, req.LeaseID, time.Hour) }},
		{name: "facts", do: func() error {
			_, err := l.commits.ReadCheckOutFacts(ctx, schemas.CheckOutSubjects{UserBarcode: "p", ItemBarcode: "i"})
			return err
		}},
		{name: "facts of a check-in", do: func() error {
			of := schemas.CheckOutSubjects{ItemBarcode: "i", ServicePointID: uuid.NewString()}
			_, err := l.commits.ReadCheckOutFacts(ctx, of)
			return err
		}},
		{name: "a commit", do: func() error { _, err := l.commits.CheckOut(ctx, checkOut); return err }},
		{name: "settling it", do: func() error { _, err := l.commits.SettleCheckOut(ctx, c.loan); return err }},
		{name: "reading it", do: func() error { _, err := l.commits.DurableLoan(ctx, c.loan); return err }},
		{name: "finishing a key", do: func() error { return keys.Finish(ctx, req.LeaseID, []byte(`{}`)) }},
		{name: "a release", do: func() error { _, err := l.locks.Release(ctx, c.lock); return err }},
		{name: "an acquire", do: func() error {
			_, _, err := l.locks.Acquire(ctx, lock.Request{UserID: c.user, TTL: time.Hour})
			return err
		}},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

func TestOpen_Defaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, url     string
		connect, ping time.Duration
		statement     string // "" is not set
		log           []string
	}{
		{
			name: "one host", url: "postgres://u:secret@db1/x", connect: 2 * time.Second, ping: time.Second, statement: "31000",
			log: []string{"db1:5432", "database=x", "target_session_attrs=primary"},
		},
		{
			name:    "what the URL says wins",
			url:     "postgres://u:secret@db1:5433/x?connect_timeout=7&statement_timeout=5000&pool_ping_timeout=3s",
			connect: 7 * time.Second, ping: 3 * time.Second, statement: "5000", log: []string{"db1:5433"},
		},
		{
			name: "behind PgBouncer", url: "postgres://u:secret@db1/x?default_query_exec_mode=exec",
			connect: 2 * time.Second, ping: time.Second, log: []string{"db1:5432"},
		},
		{
			name: "several hosts, of which one is the primary", url: "postgres://u:secret@db1,db2:5433/x",
			connect: 2 * time.Second, ping: time.Second, statement: "31000", log: []string{
				"db1:5432 db2:5433", "target_session_attrs=primary",
			},
		},
		{
			name: "several poolers", url: "postgres://u:secret@db1,db2:5433/x?default_query_exec_mode=exec",
			connect: 2 * time.Second, ping: time.Second,
			log: []string{"db1:5432 db2:5433", "level=WARN", "may lead to a standby"},
		},
		{
			name: "several hosts, of which one can write", url: "postgres://u:secret@db1,db2/x?target_session_attrs=read-write",
			connect: 2 * time.Second, ping: time.Second, statement: "31000", log: []string{"target_session_attrs=read-write"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			db, err := postgres.Open(t.Context(),
				database.Settings{URL: tt.url, MaxConns: 9, StatementTimeout: 30 * time.Second},
				slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			for _, pool := range []*pgxpool.Pool{db.Pool(), db.UrgentPool()} {
				c := pool.Config()
				if c.ConnConfig.ConnectTimeout != tt.connect || c.PingTimeout != tt.ping ||
					c.ConnConfig.RuntimeParams["statement_timeout"] != tt.statement {
					t.Errorf("got connect %s, ping %s, statement %q", c.ConnConfig.ConnectTimeout, c.PingTimeout,
						c.ConnConfig.RuntimeParams["statement_timeout"])
				}
			}
			if sum := db.Pool().Config().MaxConns + db.UrgentPool().Config().MaxConns; sum != 9 {
				t.Errorf("the pools have %d connections, want 9 together", sum)
			}
			for _, want := range tt.log {
				if !strings.Contains(log.String(), want) {
					t.Errorf("%q is missing in the log:\n%s", want, &log)
				}
			}
			if strings.Contains(log.String(), "secret") || !strings.Contains(strings.Join(tt.log, ""), "WARN") &&
				strings.Contains(log.String(), "WARN") {
				t.Errorf("the log has a password or a warning:\n%s", &log)
			}
		})
	}
}

// The checks before the database refuse such values. One that passes them is still the
// caller's.
func TestToFault(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	tests := map[string]struct {
		statement string
		want      fault.Code
	}{
		"NUL in a jsonb text": {`SELECT '{"a":"\u0000"}'::jsonb->>'a'`, fault.Invalid},
		"no UTF-8":            {`SELECT convert_from('\xff', 'UTF8')`, fault.Invalid},
		"no UUID":             {`SELECT 'x'::uuid`, fault.Invalid},
		"a number too large":  {`SELECT 99999999999::text::integer`, fault.Invalid},
		"no date":             {`SELECT 'soon'::timestamptz`, fault.Invalid},
		"a 30th of February":  {`SELECT '2026-02-30'::timestamptz`, fault.Invalid},
		"an offset of a day":  {`SELECT '2026-02-01T00:00:00+24:00'::timestamptz`, fault.Invalid},
		"too long for an index": {
			`INSERT INTO ` + postgres.SchemaName(id) +
				`.usergroup SELECT gen_random_uuid(), jsonb_build_object('group', string_agg(md5(i::text), '')) FROM ` +
				`generate_series(1, 9999) i`,
			fault.Invalid,
		},
		"a division by zero":   {`SELECT 1/0`, fault.Internal},
		"deadlocks each time":  {`DO $$ BEGIN RAISE 'deadlock' USING ERRCODE = '40P01'; END $$`, fault.Timeout},
		"conflicts each time":  {`DO $$ BEGIN RAISE 'conflict' USING ERRCODE = '40001'; END $$`, fault.Timeout},
		"a full disk":          {`DO $$ BEGIN RAISE 'full' USING ERRCODE = '53100'; END $$`, fault.Unavailable},
		"no memory":            {`DO $$ BEGIN RAISE 'no memory' USING ERRCODE = '53200'; END $$`, fault.Unavailable},
		"a failing disk":       {`DO $$ BEGIN RAISE 'broken' USING ERRCODE = '58030'; END $$`, fault.Unavailable},
		"a table of no tenant": {`SELECT 1 FROM nowhere.loan`, fault.UnknownTenant},
		"a column too new":     {`SELECT nonsense FROM ` + postgres.SchemaName(id) + `.loan`, fault.TenantNotReady},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := db.Pool().Exec(t.Context(), tt.statement)
			wantCode(t, postgres.ToFault("testing", err), tt.want)
		})
	}
}
