package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"
)

// connections are those of a pool that calls of one class may use at once.
//
// Calls of holders, which renew or release a lock, may use all urgent ones. Some of those are
// reserved for them, because a renewal that waits behind other calls costs the holder its
// lock. Calls that want a lock or read one, and what moves or compares claims, use the unreserved ones.
// Everything else is ordinary.
type connections struct {
	pool   *pgxpool.Pool
	places *semaphore.Weighted
}

func newConnections(pool *pgxpool.Pool, size int32) connections {
	return connections{pool: pool, places: semaphore.NewWeighted(int64(size))}
}

// splitConnections reserves a quarter of the urgent connections for holders. A single one is
// reserved, and other calls share the ordinary ones.
func (db *DB) splitConnections() {
	size := db.conns.Urgent.Config().MaxConns
	db.urgent = newConnections(db.conns.Urgent, size)
	db.ordinary = newConnections(db.conns.Ordinary, db.conns.Ordinary.Config().MaxConns)
	db.unreserved = db.ordinary
	if size > 1 {
		db.unreserved = newConnections(db.conns.Urgent, size-max(1, size/4))
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
