package database_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/devpostgres"
	"checkoutlock/devpostgres/testserver"
)

const (
	emitSQL        = `SELECT pg_logical_emit_message(true, 'test', '')`
	cancelWaitsSQL = `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
)

// commitTimeout is longer than a busy host stands still.
const commitTimeout = 3 * time.Second

// hostOf returns the host and port of a URL.
func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// replaceHost returns a URL with other hosts.
func replaceHost(t *testing.T, address, hosts string) string {
	t.Helper()
	return strings.Replace(address, "@"+hostOf(t, address)+"/", "@"+hosts+"/", 1)
}

// execute runs statements on a connection of its own, also when the test ends.
func execute(t *testing.T, address string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
}

// setStandby lets each COMMIT of the server wait for a standby of that name; "" for none.
func setStandby(t *testing.T, server *devpostgres.Server, name string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	execute(t, server.URL(), `ALTER SYSTEM SET synchronous_standby_names = '`+name+`'`, `SELECT pg_reload_conf()`)
	for waits := name == ""; !waits; {
		waits = waitsForStandby(t, server, conn)
	}
}

// waitsForStandby reports whether a COMMIT waits for a standby. The checkpointer reads the setting some time
// after it was made, which no view shows.
func waitsForStandby(t *testing.T, server *devpostgres.Server, conn *pgx.Conn) (waits bool) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		probe, err := pgx.Connect(t.Context(), server.URL())
		if err == nil {
			_, err = probe.Exec(t.Context(), emitSQL)
			_ = probe.Close(t.Context())
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return waits
		default:
		}
		var cancelled int
		if err := conn.QueryRow(t.Context(), cancelWaitsSQL).Scan(&cancelled); err != nil {
			t.Fatal(err)
		}
		waits = waits || cancelled > 0
	}
}

// commit commits a transaction that waits for the synchronous standby if there is one.
func commit(t *testing.T, db *database.DB) error {
	return db.InTx(t.Context(), db.Urgent, database.Bounds{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), emitSQL)
		return err
	})
}

// askPort returns the port of the server that a connection of the pool leads to.
func askPort(t *testing.T, pool *pgxpool.Pool) (port string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT current_setting('port')`).Scan(&port); err != nil {
		t.Fatal(err)
	}
	return port
}

// The second server stands for the new primary, beside an old one whose standbys have left it.
func TestDB_LeavesAServerThatDoesNotConfirmCommits(t *testing.T) {
	t.Parallel()
	old, fresh := testserver.Start(t, nil), testserver.Start(t, nil)
	account, err := url.Parse(old.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := account.User.Password()
	execute(t, fresh.URL(), `ALTER ROLE postgres PASSWORD '`+password+`'`)
	promoted := newGate(t, hostOf(t, fresh.URL()))
	promoted.keep.Store(true)
	_, freshPort, _ := net.SplitHostPort(hostOf(t, fresh.URL()))
	db, log := openLogged(t, replaceHost(t, old.URL(), hostOf(t, old.URL())+","+promoted.address))
	db.SetCommitTimeout(commitTimeout)
	if err := commit(t, db); err != nil {
		t.Fatal(err)
	}
	setStandby(t, old, "gone")
	if err := commit(t, db); err == nil {
		t.Error("a COMMIT without the standby succeeded")
	}
	if got := askPort(t, db.Ordinary); got == freshPort {
		t.Fatal("a connection leads to the second host before its promotion")
	}
	promoted.keep.Store(false)
	_ = untilReady(t, db, true) // without a caller that commits
	for _, pool := range []*pgxpool.Pool{db.Urgent, db.Ordinary} {
		if got := askPort(t, pool); got != freshPort {
			t.Errorf("a new connection leads to port %s, want %s", got, freshPort)
		}
	}
	if err := commit(t, db); err != nil {
		t.Errorf("a COMMIT on the other server: %v", err)
	}
	if n := log.count("is lost"); n > 0 {
		t.Errorf("the log calls the database lost %d times, want none", n)
	}
}

// Then the next commits do not wait for a standby that the server has lost.
func TestDB_BeginsWithAnotherHostAfterAnUnconfirmedCommit(t *testing.T) {
	t.Parallel()
	old := testserver.Start(t, nil)
	other := newGate(t, hostOf(t, old.URL()))
	db, _ := openLogged(t, replaceHost(t, old.URL(), hostOf(t, old.URL())+","+other.address))
	if err := commit(t, db); err != nil {
		t.Fatal(err)
	}
	setStandby(t, old, "gone")
	done := make(chan error, 1)
	go func() { done <- commit(t, db) }()
	for cancelled := 0; cancelled == 0; { // as a demotion does
		err := db.Ordinary.QueryRow(t.Context(), cancelWaitsSQL).Scan(&cancelled)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; !errors.Is(err, database.ErrUnconfirmed) {
		t.Errorf("got %v, want %v", err, database.ErrUnconfirmed)
	}
	askPort(t, db.Urgent)
	if other.came.Load() == 0 {
		t.Error("new connections begin with the same host")
	}
}

func TestDB_IsNotReadyWhileCommitsWait(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, nil)
	db, log := openLogged(t, server.URL())
	db.SetCommitTimeout(commitTimeout)
	_ = untilReady(t, db, true)
	setStandby(t, server, "gone")
	if err := commit(t, db); err == nil {
		t.Error("a COMMIT without the standby succeeded")
	}
	if _, err := db.CheckServer(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "commits are not confirmed") {
		t.Errorf("readiness: %v", err)
	}
	if !db.CountRefusal() {
		t.Error("a refusal is not counted")
	}
	setStandby(t, server, "")
	_ = untilReady(t, db, true) // without a caller that commits
	if err := commit(t, db); err != nil {
		t.Errorf("a COMMIT with the standby: %v", err)
	}
	if begins, ends := log.count("the database cannot write"), log.count("refused=1"); begins != 1 || ends != 1 {
		t.Errorf("%d begins and %d ends with the refusal are logged, want one each", begins, ends)
	}
}

// gate is a host of the URL that passes connections on to a server, or keeps them waiting.
type gate struct {
	address string
	came    atomic.Int64  // connections so far
	keep    atomic.Bool   // keeps new connections waiting
	kept    chan net.Conn // those that wait
}

// newGate returns a gate to the server at target.
func newGate(t *testing.T, target string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{address: listener.Addr().String(), kept: make(chan net.Conn, 100)}
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		_ = listener.Close()
		end()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			g.came.Add(1)
			if g.keep.Load() {
				g.kept <- client
				continue
			}
			passOn(ctx, client, target)
		}
	}()
	return g
}

// passOn copies both ways until ctx is done.
func passOn(ctx context.Context, client net.Conn, target string) {
	server, err := net.Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = way[0].(*net.TCPConn).WriteTo(way[1])
			_ = way[1].Close()
		}()
	}
}

func TestDB_BeginsWithTheHostThatWasThePrimary(t *testing.T) {
	t.Parallel()
	primary := testserver.URL(t)
	silent := newGate(t, hostOf(t, primary))
	silent.keep.Store(true)
	db, _ := openLogged(t, replaceHost(t, primary, silent.address+","+hostOf(t, primary)))
	for range 3 {
		askPort(t, db.Urgent)
		db.AllowReset()
		db.Reset()
	}
	askPort(t, db.Ordinary)
	if n := silent.came.Load(); n != 1 {
		t.Errorf("%d connections came to the silent host, want that of the first attempt alone", n)
	}
}

func TestDB_LogsAnOutageOnce(t *testing.T) {
	t.Parallel()
	g := newGate(t, hostOf(t, testserver.URL(t)))
	db, log := openLogged(t, replaceHost(t, testserver.URL(t), g.address))
	askPort(t, db.Urgent)

	g.keep.Store(true) // the server falls silent
	late := make(chan error, 1)
	go func() {
		_, err := db.Ordinary.Exec(t.Context(), "SELECT 1")
		late <- err
	}()
	held := <-g.kept
	g.keep.Store(false) // and is back
	db.AllowReset()
	db.Reset()
	askPort(t, db.Urgent)
	_ = held.Close() // the attempt that began before fails now
	if err := <-late; err == nil {
		t.Error("the attempt that was held succeeded")
	}
	if n := log.count("is lost"); n != 0 {
		t.Errorf("the log calls the database lost %d times after its return", n)
	}

	g.keep.Store(true)
	go func() { _ = (<-g.kept).Close() }()
	db.AllowReset()
	db.Reset()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := db.Urgent.Exec(ctx, "SELECT 1"); err == nil {
		t.Error("a silent server answered")
	}
	for range 2 {
		if !db.CountRefusal() {
			t.Error("a refusal is not counted")
		}
	}
	g.keep.Store(false)
	askPort(t, db.Urgent)
	lost, back := log.count("is lost"), log.count(`the database is back" database=`+g.address+" refused=2")
	if lost != 1 || back != 1 {
		t.Errorf("%d losses and %d returns with both refusals are logged, want one each", lost, back)
	}
	if db.CountRefusal() {
		t.Error("a refusal is counted after the return")
	}
}
