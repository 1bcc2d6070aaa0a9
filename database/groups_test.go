package database_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
)

type (
	groups = database.Groups[string, int, int]
	member = database.Member[int, int]
)

// groupTest decides which calls form a group: it holds the only connection until begin.
type groupTest struct {
	*testing.T
	groups *groups
	began  chan []int // what the members of each group asked
	held   *pgxpool.Conn
}

// newGroupTest answers each call with its double after send has run.
func newGroupTest(t *testing.T, send func(ctx context.Context, group []*member) error) *groupTest {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(testserver.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	g := &groupTest{T: t, began: make(chan []int, 10)}
	g.groups = &groups{Pool: pool, Send: func(ctx context.Context, _ *pgxpool.Conn, group []*member) error {
		var asked []int
		for _, m := range group {
			asked = append(asked, m.Asked)
		}
		g.began <- asked
		if send != nil {
			if err := send(ctx, group); err != nil {
				return err
			}
		}
		for _, m := range group {
			m.Answer, m.Err = 2*m.Asked, nil
		}
		return nil
	}}
	if g.held, err = pool.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.begin)
	return g
}

// begin lets the group begin. A repeat does nothing.
func (g *groupTest) begin() { g.held.Release() }

type result struct {
	answer int
	err    error
}

// run starts a call that waits as number n of its key, counted from 0.
func (g *groupTest) run(ctx context.Context, key string, n, asked int) <-chan result {
	g.Helper()
	got := make(chan result, 1)
	go func() {
		answer, err := g.groups.Run(ctx, key, asked)
		got <- result{answer, err}
	}()
	g.untilWaiting(key, n)
	return got
}

func (g *groupTest) untilWaiting(key string, n int) {
	g.Helper()
	for deadline := time.Now().Add(time.Minute); g.groups.Waiting(key) != n; {
		if time.Now().After(deadline) {
			g.Fatalf("%d calls wait, want %d", g.groups.Waiting(key), n)
		}
	}
}

func (g *groupTest) wantBegun(asked ...int) {
	g.Helper()
	select {
	case got := <-g.began:
		if !slices.Equal(got, asked) {
			g.Errorf("the group is %v, want %v", got, asked)
		}
	case <-time.After(time.Minute):
		g.Fatalf("no group of %v began", asked)
	}
}

func (g *groupTest) want(call <-chan result, answer int, err error) {
	g.Helper()
	select {
	case got := <-call:
		if got.answer != answer || !errors.Is(got.err, err) {
			g.Errorf("got %d, %v, want %d, %v", got.answer, got.err, answer, err)
		}
	case <-time.After(time.Minute):
		g.Fatalf("no answer, want %d, %v", answer, err)
	}
}

func TestGroups_OneSendServesAll(t *testing.T) {
	t.Parallel()
	g := newGroupTest(t, nil)
	calls := []<-chan result{g.run(t.Context(), "a", 0, 1), g.run(t.Context(), "a", 1, 2), g.run(t.Context(), "a", 2, 2)}
	other := g.run(t.Context(), "b", 0, 9)
	g.begin()
	for i, answer := range []int{2, 4, 4} {
		g.want(calls[i], answer, nil)
	}
	g.want(other, 18, nil)
	g.wantBegun(1, 2, 2)
	g.wantBegun(9)
	g.untilForgotten()
}

// untilForgotten waits until the groups know no key.
func (g *groupTest) untilForgotten() {
	g.Helper()
	for deadline := time.Now().Add(time.Minute); g.groups.Keys() != 0; {
		if time.Now().After(deadline) {
			g.Fatalf("%d keys are left", g.groups.Keys())
		}
	}
}

func TestGroups_MembersThatLeaveBefore(t *testing.T) {
	t.Parallel()
	g := newGroupTest(t, nil)
	leader, leaderLeaves := context.WithCancel(t.Context())
	second, secondLeaves := context.WithCancel(t.Context())
	defer leaderLeaves()
	defer secondLeaves()
	calls := []<-chan result{g.run(leader, "a", 0, 1), g.run(second, "a", 1, 2), g.run(t.Context(), "a", 2, 3)}
	secondLeaves()
	g.want(calls[1], 0, context.Canceled)
	leaderLeaves()
	g.want(calls[0], 0, context.Canceled)
	g.begin()
	g.want(calls[2], 6, nil)
	g.wantBegun(3)
}

// TestGroups_MembersThatLeaveMeanwhile ends the calls of a leader and of a member while
// their group is under way.
func TestGroups_MembersThatLeaveMeanwhile(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprintf("early %t", early), func(t *testing.T) {
			t.Parallel()
			goOn := make(chan struct{})
			g := newGroupTest(t, func(ctx context.Context, _ []*member) error {
				<-goOn
				return ctx.Err()
			})
			g.groups.LeaveEarly = early
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			leader, second, stays := g.run(ctx, "a", 0, 1), g.run(ctx, "a", 1, 2), g.run(t.Context(), "a", 2, 3)
			g.begin()
			g.wantBegun(1, 2, 3)
			next := g.run(t.Context(), "a", 1, 4)
			waits := g.run(ctx, "a", 2, 5)
			leave()
			g.want(waits, 0, context.Canceled) // the second, which waits for longer, has seen it too
			if early {
				g.want(second, 0, context.Canceled)
				close(goOn)
			} else {
				close(goOn)
				g.want(second, 4, nil)
			}
			g.want(leader, 2, nil)
			g.want(stays, 6, nil)
			g.want(next, 8, nil)
			g.wantBegun(4)
			g.untilForgotten()
		})
	}
}

func TestGroups_Errors(t *testing.T) {
	t.Parallel()
	rolledBack := &pgconn.PgError{Code: database.LockNotAvailable}
	full := &pgconn.PgError{Code: "53100", SeverityUnlocalized: "ERROR"}
	stopped := &pgconn.PgError{Code: "57P01"}
	for _, tt := range []struct {
		name       string
		send, want error
	}{
		{name: "rolled back", send: rolledBack, want: database.ErrRunAlone},
		{name: "a full disk", send: full, want: full},
		{name: "a server that stops", send: stopped, want: stopped},
		{name: "a lost session", send: io.ErrUnexpectedEOF, want: io.ErrUnexpectedEOF},
		{name: "no answer in time", send: context.DeadlineExceeded, want: context.DeadlineExceeded},
		{name: "not confirmed", send: database.ErrUnconfirmed, want: database.ErrUnconfirmed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGroupTest(t, func(context.Context, []*member) error { return tt.send })
			calls := []<-chan result{g.run(t.Context(), "a", 0, 1), g.run(t.Context(), "a", 1, 2)}
			g.begin()
			for _, call := range calls {
				g.want(call, 0, tt.want)
			}
			g.untilForgotten()
		})
	}
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		g := newGroupTest(t, nil)
		refused, goOn := errors.New("refused"), make(chan struct{})
		cfg := g.groups.Pool.Config()
		cfg.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
			<-goOn
			return refused
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		g.groups.Pool = pool
		leader, second := g.run(t.Context(), "a", 0, 1), g.run(t.Context(), "a", 1, 2)
		close(goOn)
		g.want(leader, 0, refused)
		g.want(second, 0, database.ErrRunAlone)
		g.untilForgotten()
	})
}

// deafConn is a connection whose answers are lost from a moment on.
type deafConn struct {
	net.Conn
	isDeaf *atomic.Bool
}

func (c deafConn) Read(b []byte) (int, error) {
	if c.isDeaf.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

// The batch may be committed, also where pgx returns "conn closed", as in the modes for PgBouncer.
func TestGroups_LostAnswerIsNoRollback(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		cfg, err := pgxpool.ParseConfig(testserver.URL(t))
		if err != nil {
			t.Fatal(err)
		}
		var isDeaf atomic.Bool
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DefaultQueryExecMode = mode
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return deafConn{conn, &isDeaf}, err
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		g := groups{Pool: pool, Send: func(ctx context.Context, conn *pgxpool.Conn, _ []*member) error {
			isDeaf.Store(true)
			return database.Query(ctx, conn, `SELECT 1`, `SELECT 2`, nil, func(rows pgx.Rows) error { return rows.Err() })
		}}
		if _, err := g.Run(t.Context(), "a", 1); !database.ConnectionLost(err) {
			t.Errorf("%s: %v, want a lost session", mode, err)
		}
	}
}

func TestGroups_PanicBlocksNoOther(t *testing.T) {
	t.Parallel()
	g := newGroupTest(t, func(_ context.Context, group []*member) error {
		if group[0].Asked == 1 {
			panic("a defect")
		}
		return nil
	})
	go func() {
		defer func() { _ = recover() }()
		_, _ = g.groups.Run(t.Context(), "a", 1)
	}()
	g.untilWaiting("a", 0)
	second := g.run(t.Context(), "a", 1, 2)
	g.begin()
	g.want(second, 0, database.ErrNoAnswer)
	g.want(g.run(t.Context(), "b", -1, 3), 6, nil)
}
