package database

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
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

// lackWatch finds out whether the database lacks what it needs to write. A refusal makes it probe.
// Then it probes until it is known that a write succeeds, also without a caller. It logs the begin
// and the end of an outage. A refusal of one statement alone, such as a huge one, is no outage.
//
// Its goroutine runs after refusals only, and ends with close.
type lackWatch struct {
	pool  *pgxpool.Pool
	hosts string
	log   *slog.Logger
	ctx   context.Context //nolint:containedctx // that of the goroutine; close ends it
	end   context.CancelFunc

	running sync.WaitGroup
	mu      sync.Mutex
	looking bool   // the goroutine runs
	refused bool   // since the last probe began
	lack    string // what the last probe found
}

func newLackWatch(ctx context.Context, pool *pgxpool.Pool, hosts string, log *slog.Logger) *lackWatch {
	w := &lackWatch{pool: pool, hosts: hosts, log: log}
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	return w
}

// noteRefusal makes the watch probe. It does not wait.
func (w *lackWatch) noteRefusal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = true
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
		w.mu.Unlock()
		w.noteProbe(w.probe())
		select {
		case <-w.ctx.Done():
		case <-time.After(probeInterval):
		}
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

func (w *lackWatch) probe() error {
	ctx, cancel := context.WithTimeout(w.ctx, probeTimeout)
	defer cancel()
	_, err := Exec(ctx, w.pool, probeSettingsSQL, probeSQL)
	return err
}

// noteProbe keeps and logs what changed. A limit of temporary files proves nothing, and neither
// does a server that is away, which readiness reports by itself.
func (w *lackWatch) noteProbe(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.lack
	code, _ := SQLState(err)
	switch {
	case err == nil:
		w.lack = ""
	case code == configurationLimit:
		w.lack, w.refused = "", false // the refusal was the probe's own
	case Lack(err) != "":
		w.lack = Lack(err)
	}
	switch {
	case before == "" && w.lack != "":
		w.log.ErrorContext(w.ctx, "the database cannot write", "database", w.hosts, "err", err)
	case before != "" && w.lack == "":
		w.log.InfoContext(w.ctx, "the database can write again", "database", w.hosts)
	}
}
