package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"
)

// connections are those that calls of one class may use at once.
//
// Holders are those who renew or release a lock. Some connections are theirs alone, because a
// renewal that waits behind other callers costs the holder its lock. Callers are all others
// that want a lock or read one, and what moves claims. Everything else is upkeep.
type connections struct {
	pool   *pgxpool.Pool
	places *semaphore.Weighted
}

func newConnections(pool *pgxpool.Pool, size int32) connections {
	return connections{pool: pool, places: semaphore.NewWeighted(int64(size))}
}

// splitConnections keeps a quarter of the connections for locks for their holders. A single
// one is theirs, and callers share those for upkeep.
func (db *DB) splitConnections() {
	urgent, ordinary := db.conns.Urgent.Config().MaxConns, db.conns.Ordinary.Config().MaxConns
	db.holders, db.upkeep = newConnections(db.conns.Urgent, urgent), newConnections(db.conns.Ordinary, ordinary)
	db.callers = db.upkeep
	if urgent > 1 {
		db.callers = newConnections(db.conns.Urgent, urgent-max(1, urgent/4))
	}
}

// acquire returns a connection. The caller gives it to release.
func (c connections) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if err := c.places.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting for a connection: %w", err)
	}
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		c.places.Release(1)
		return nil, fmt.Errorf("getting a connection: %w", err)
	}
	return conn, nil
}

func (c connections) release(conn *pgxpool.Conn) {
	conn.Release()
	c.places.Release(1)
}

// areBusy reports whether a call would have to wait.
func (c connections) areBusy() bool {
	if c.places.TryAcquire(1) {
		c.places.Release(1)
		return false
	}
	return true
}
