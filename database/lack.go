package database

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"checkoutlock/schemas/pace"
)

// SQLSTATE codes of work that PostgreSQL refuses because it lacks something.
const (
	diskFull           = "53100"
	outOfMemory        = "53200"
	configurationLimit = "53400"
	ioError            = "58030"
)

var lacks = map[string]string{
	diskFull:           "the database cannot write: no space left",
	outOfMemory:        "the database cannot write: out of memory",
	configurationLimit: "the database cannot write: a limit of its configuration is reached",
	ioError:            "the database cannot write: its disk fails",
}

// Lack returns what PostgreSQL lacked when it refused a statement or a COMMIT with err, and ""
// for other errors. The transaction is rolled back then, and a repeat would be refused too.
//
// PostgreSQL does not report an ERROR once a transaction is committed. What fails after that, or
// while it writes the record of the commit, ends the server, and counts as a lost connection.
func Lack(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && !endsSession(pg) {
		return lacks[pg.Code]
	}
	return ""
}

// endsSession reports whether the session ends with the error, FATAL or PANIC.
func endsSession(e *pgconn.PgError) bool { return e.SeverityUnlocalized != "ERROR" }

// lateCommits is what a database lacks whose COMMITs are not confirmed.
const lateCommits = "commits are not confirmed: the synchronous standby or the server does not answer"

const (
	// probeInterval is the pause between two probes.
	probeInterval = 500 * time.Millisecond
	probeTimeout  = 2 * time.Second
)

// A probe writes more than a megabyte to a temporary file beside the tables of the database. So it
// needs no table and no rights, writes no WAL, and leaves nothing. It is larger than what a
// statement needs, so that a disk with little space does not count as mended.
const (
	probeSettingsSQL = `SELECT set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true), set_config('statement_timeout', '2s', true)`
	probeSQL         = `SELECT count(*) FROM generate_series(1, 100000)`
)

// CommitSQL writes WAL, so that its COMMIT waits for the synchronous standby, also for what others have
// committed before.
const CommitSQL = `SELECT pg_logical_emit_message(true, 'checkoutlock', '')`

// lackWatch finds out whether the database lacks what it needs to write. A refusal makes it probe.
// Then it probes until it is known that a write succeeds, also without a caller. It logs the begin
// and the end of an outage. A refusal of one statement alone, such as a huge one, is no outage.
//
// Its goroutine runs after refusals only, and ends with close.
type lackWatch struct {
	db  *DB
	ctx context.Context //nolint:containedctx // that of the goroutine; close ends it
	end context.CancelFunc

	running sync.WaitGroup
	mu      sync.Mutex
	looking bool   // the goroutine runs
	refused bool   // since the last probe began
	lack    string // what the last probe found
	calls   int    // refused while something lacks
}

func newLackWatch(ctx context.Context, db *DB) *lackWatch {
	w := &lackWatch{db: db}
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	return w
}

// noteRefusal makes the watch probe. It does not wait.
func (w *lackWatch) noteRefusal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = true
	w.start()
}

// noteLateCommit makes the database unusable until a probe has committed.
func (w *lackWatch) noteLateCommit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lack == "" {
		w.setLack(lateCommits, errors.New(lateCommits))
	}
	w.start()
}

// start lets the goroutine run.
func (w *lackWatch) start() {
	if !w.looking && w.ctx.Err() == nil {
		w.looking = true
		w.running.Go(w.look)
	}
}

// current returns what the database lacks now, "" for nothing.
func (w *lackWatch) current() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lack
}

// close ends the goroutine and waits for it.
func (w *lackWatch) close() {
	w.mu.Lock()
	w.end()
	w.mu.Unlock()
	w.running.Wait()
}

// look probes, with pauses, until nothing lacks and no refusal came since.
func (w *lackWatch) look() {
	for {
		w.mu.Lock()
		w.refused = false
		lack := w.lack
		w.mu.Unlock()
		w.noteProbe(lack, w.probe(lack))
		pace.Wait(w.ctx, probeInterval)
		if w.hasSeenEnough() {
			return
		}
	}
}

func (w *lackWatch) hasSeenEnough() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = w.ctx.Err() == nil && (w.refused || w.lack != "")
	return !w.looking
}

// probe writes something. What it writes depends on what the database lacks, as far as is known.
func (w *lackWatch) probe(lack string) error {
	ctx, cancel := context.WithTimeout(w.ctx, probeTimeout)
	defer cancel()
	if lack == lateCommits {
		return w.probeCommit(ctx)
	}
	_, err := Exec(ctx, w.db.Ordinary, probeSettingsSQL, probeSQL)
	return err
}

// probeCommit writes a COMMIT. If that fails, the next probe begins with another host: on this one,
// commits may wait for ever.
func (w *lackWatch) probeCommit(ctx context.Context) error {
	conn, err := w.db.Ordinary.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	host, _ := conn.Conn().PgConn().CustomData()[servedBy].(string)
	err = w.db.Confirm(conn, w.db.commitTimeout, func() error {
		_, err := conn.Exec(ctx, CommitSQL)
		return err
	})
	if err != nil {
		w.db.leave(host)
	}
	return err
}

// noteProbe keeps and logs what a probe for a lack changed. A success ends that lack, and none that was found
// meanwhile. So does a limit of temporary files, because below the probe's need no probe can succeed. A server
// that is away changes nothing: readiness reports it by itself.
func (w *lackWatch) noteProbe(lack string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	code, _ := SQLState(err)
	limited := code == configurationLimit
	if limited {
		w.refused = false // it was the probe's own
	}
	switch {
	case (err == nil || limited) && w.lack == lack:
		w.setLack("", nil)
	case Lack(err) != "" && !limited:
		w.setLack(Lack(err), err)
	}
}

func (w *lackWatch) setLack(lack string, err error) {
	switch {
	case w.lack == "" && lack != "":
		w.db.log.ErrorContext(w.ctx, "the database cannot write", "database", w.db.Hosts, "err", err)
	case w.lack != "" && lack == "":
		w.db.log.InfoContext(w.ctx, "the database can write again", "database", w.db.Hosts, "refused", w.calls)
		w.calls = 0
	}
	w.lack = lack
}

// countRefusal counts a call that was refused while something lacks. It reports whether it does.
func (w *lackWatch) countRefusal() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lack == "" {
		return false
	}
	w.calls++
	return true
}
