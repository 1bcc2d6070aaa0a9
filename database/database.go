// Package database connects a service to PostgreSQL: pools whose sessions have bounds,
// outages, the wait at the start, and migrations. The statements are the services' own.
package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is the connections of one service. It is safe for concurrent use.
//
// Half of them are for work that must not wait behind the other half's slow queries.
type DB struct {
	Urgent   *pgxpool.Pool
	Ordinary *pgxpool.Pool
	// Hosts names the servers of the URL, for logs and errors.
	Hosts string
	// MigrateURL is the address for migrations.
	MigrateURL string

	commitTimeout time.Duration
	writesMargin  time.Duration

	opened    atomic.Bool  // both pools exist
	readOnly  atomic.Bool  // the server that judgeMode last saw refuses writes
	silent    atomic.Bool  // the last check of an idle connection got no answer
	lastReset atomic.Int64 // UnixNano
	servers   servers
	watch     *connectionWatch
	lack      *lackWatch
	log       *slog.Logger
}

// tracer sees what all connections do.
type tracer struct {
	*connectionWatch // their attempts to connect
	*plans           // their statements
}

// Open prepares the pools. It does not connect: Await waits for the server.
func Open(ctx context.Context, cfg Settings, log *slog.Logger) (*DB, error) {
	base, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, errors.New("DATABASE_URL cannot be read as a PostgreSQL connection URL") // pgx's message may hold the password
	}
	attrs := requirePrimary(cfg.URL, base.ConnConfig)
	size := cmp.Or(cfg.MaxConns, base.MaxConns)
	db := &DB{
		MigrateURL: cmp.Or(cfg.MigrateURL, cfg.URL), Hosts: strings.Join(hosts(base.ConnConfig), ", "), log: log,
		commitTimeout: defaultCommitTimeout, writesMargin: defaultWritesMargin,
	}
	db.watch = &connectionWatch{hosts: db.Hosts, servers: &db.servers, log: log, settle: settleTime}
	watched := tracer{db.watch, newPlans()}
	base.ConnConfig.Tracer = watched
	if cfg.Traced {
		base.ConnConfig.Tracer = multitracer.New(watched, statementSpans{})
	}
	base.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
		db.servers.order(cc)
		if !statementCache.MatchString(cfg.URL) {
			cc.StatementCacheCapacity = int(watched.room.Load())
		}
		return nil
	}
	for _, p := range []struct {
		pool **pgxpool.Pool
		size int32
	}{{&db.Urgent, size / 2}, {&db.Ordinary, size - size/2}} {
		*p.pool, err = pgxpool.NewWithConfig(ctx, db.poolConfig(base, p.size, cfg.StatementTimeout, watched.plans))
		if err != nil {
			return nil, fmt.Errorf("opening the connection pool: %w", err)
		}
	}
	db.lack = newLackWatch(ctx, db)
	db.opened.Store(true)
	logTarget(ctx, attrs, base.ConnConfig, log)
	return db, nil
}

// CountRefusal counts a call that was refused because the database is lost or cannot write. It
// reports whether that outage is logged already. The line of its end has the count.
func (db *DB) CountRefusal() bool { return db.watch.countRefusal() || db.lack.countRefusal() }

// Close waits for connections in use and closes the pools.
func (db *DB) Close() {
	db.lack.close()
	db.Ordinary.Close()
	db.Urgent.Close()
}
