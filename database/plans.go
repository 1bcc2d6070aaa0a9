package database

import (
	"context"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// plans makes connections plan their statements anew when a table has grown, and gives them more room
// for statements when one needs it. PostgreSQL plans a prepared statement for the size that its tables
// have then, and keeps the plan until it analyzes one of them. A plan that is made for an empty table
// reads the whole table for ever.
//
// A table has grown when an INSERT of this process has added 16 rows, and again with each fourfold
// of that.
type plans struct {
	seed  maphash.Seed
	grown atomic.Uint64 // how often a table has grown
	room  atomic.Int64  // of a new connection, for prepared statements

	mu    sync.Mutex
	added map[uint64]int64 // rows, by the hash of the INSERT
}

// sessionPlans are the plans of one connection.
type sessionPlans struct {
	statement string // that is under way outside of a batch
	grown     uint64 // as of the plans
	room      int64  // as of the connection
}

func newPlans() *plans {
	p := &plans{seed: maphash.MakeSeed(), added: map[uint64]int64{}}
	p.room.Store(fewPrepared)
	return p
}

// planned is where a connection keeps its sessionPlans.
const planned = "planned"

// ofSession returns the plans of a connection.
func (p *plans) ofSession(c *pgconn.PgConn) *sessionPlans {
	s, ok := c.CustomData()[planned].(*sessionPlans)
	if !ok {
		s = &sessionPlans{grown: p.grown.Load(), room: p.room.Load()}
		c.CustomData()[planned] = s
	}
	return s
}

// TraceQueryStart implements pgx.QueryTracer.
func (p *plans) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	p.ofSession(conn.PgConn()).statement = data.SQL
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (p *plans) TraceQueryEnd(_ context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	p.count(p.ofSession(conn.PgConn()).statement, data.CommandTag)
}

// TraceBatchStart implements pgx.BatchTracer.
func (p *plans) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (p *plans) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	p.count(data.SQL, data.CommandTag)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (p *plans) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// renew drops the connection's plans if a table has grown since they were made. A connection that
// fails, or has more statements than room, is closed. The pool takes another one.
func (p *plans) renew(ctx context.Context, conn *pgx.Conn) (usable bool, err error) {
	s, grown := p.ofSession(conn.PgConn()), p.grown.Load()
	if s.room < mostPrepared && len(textsOn(conn)) > fewPrepared {
		p.room.Store(mostPrepared)
		return false, nil
	}
	if s.grown == grown {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := conn.PgConn().Exec(ctx, "DISCARD PLANS").Close(); err != nil {
		return false, nil //nolint:nilerr // see above
	}
	s.grown = grown
	return true, nil
}

// count adds the rows that a statement has inserted.
func (p *plans) count(statement string, tag pgconn.CommandTag) {
	if !tag.Insert() {
		return
	}
	key := maphash.String(p.seed, statement)
	p.mu.Lock()
	before := p.added[key]
	after := before + tag.RowsAffected()
	p.added[key] = after
	p.mu.Unlock()
	if sizeClass(after) > sizeClass(before) {
		p.grown.Add(1)
	}
}

// sizeClass rises by one at 16, 64, 256 rows and so on.
func sizeClass(rows int64) int { return max(1, (bits.Len64(uint64(rows))-1)/2) } //nolint:gosec // rows are not negative
