// Package ha_test loses machines of a cluster of PostgreSQL under Patroni while two circulations lend.
package ha_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	storage "checkoutlock/circulation-storage/app"
	"checkoutlock/config"
	"checkoutlock/integration-tests/stack"
)

// scenario is one outage.
type scenario struct {
	name  string
	short bool // it is part of the short form
	// begin begins the outage of the leader, or of the synchronous standby.
	begin func(t *testing.T, c *cluster, leader *machine)
	// hold is how long the outage lasts at least. It ends after the next promotion, unless that needs its end.
	hold     time.Duration
	needsEnd bool
	mend     func(t *testing.T, c *cluster, leader *machine)
	// promotes says that another leader follows, or the same one.
	promotes bool
	// first is the longest time from when commits are confirmed to the first loan, pause the longest one
	// without a loan with several hosts in the URL; 0 is not judged.
	first, pause time.Duration
}

func restart(t *testing.T, _ *cluster, n *machine) { n.begin(t, "patroni") }

func plugIn(t *testing.T, c *cluster, n *machine) { c.pull(t, n, false) }

func listScenarios() []scenario {
	var standby *machine
	return []scenario{
		{
			name: "a switchover", short: true, promotes: true, first: time.Second,
			begin: func(t *testing.T, c *cluster, leader *machine) { c.switchOver(t, leader) },
		},
		{
			name: "kill -9 of the leader", short: true, promotes: true, first: time.Second,
			begin: func(t *testing.T, _ *cluster, leader *machine) { leader.send(t, syscall.SIGKILL, "") }, mend: restart,
		},
		{
			name: "a leader frozen for 22 s", promotes: true, first: 3 * time.Second, hold: 22 * time.Second,
			begin: func(t *testing.T, _ *cluster, leader *machine) { leader.send(t, syscall.SIGSTOP, "") },
			mend:  func(t *testing.T, _ *cluster, leader *machine) { leader.send(t, syscall.SIGCONT, "") },
		},
		{
			name: "the leader's cable is pulled", promotes: true, first: 3 * time.Second,
			begin: func(t *testing.T, c *cluster, leader *machine) { c.pull(t, leader, true) }, mend: plugIn,
		},
		{
			name: "Patroni of the leader is killed alone", promotes: true, pause: 10 * time.Second,
			begin: func(t *testing.T, _ *cluster, leader *machine) { leader.send(t, syscall.SIGKILL, "patroni") }, mend: restart,
		},
		{
			name: "etcd is gone for 30 s", promotes: true, first: time.Second, hold: 30 * time.Second, needsEnd: true,
			begin: func(t *testing.T, c *cluster, _ *machine) { c.hub.send(t, syscall.SIGKILL, "etcd") },
			mend:  func(t *testing.T, c *cluster, _ *machine) { c.hub.begin(t, "etcd") },
		},
		{
			name: "the synchronous standby is gone",
			begin: func(t *testing.T, c *cluster, _ *machine) {
				standby = c.find(t, "sync_standby")
				c.pull(t, standby, true)
			},
			mend: func(t *testing.T, c *cluster, _ *machine) { c.pull(t, standby, false) },
		},
	}
}

// all says that all scenarios run, and that their times count: make ha.
var all = os.Getenv("HA_SCENARIOS") == "all"

func TestFailover(t *testing.T) {
	began := time.Now()
	c := startCluster(t)
	l := startLibrary(t, c)
	up := time.Since(began)
	t.Logf("all is up after %.1f s", up.Seconds())
	if all && up > 30*time.Second {
		t.Errorf("all was up after %s, want at most 30 s", up)
	}
	l.checkDoctor(t)
	began = time.Now()
	table := "| Scenario | Way | seconds without success | after commits are confirmed, s | loans lost | " +
		"patrons over the limit | longest answer, s |\n"
	for _, s := range listScenarios() {
		if all || s.short {
			t.Run(s.name, func(t *testing.T) { table += s.run(t, l) })
		}
	}
	t.Logf("the scenarios took %.0f s\n%s", time.Since(began).Seconds(), table)
}

// run runs the scenario under load and returns its rows of the table.
func (s scenario) run(t *testing.T, l *library) (rows string) {
	t.Helper()
	c := l.cluster
	c.awaitHealth(t)
	l.awaitReady(t)
	const patrons = 8000 // as many as the desks serve in four minutes
	first := l.addPatrons(t, patrons)
	for i := range ways {
		l.lines.take(i)
	}
	leader := c.find(t, "leader")
	watch := startWatch(t, c)
	o := startLoad(t, l, first, patrons)
	o.awaitLoans(t, 30, time.Time{})

	began := time.Now()
	s.begin(t, c, leader)
	awaitPromotion := func() {
		if s.promotes {
			await(t, "a promotion", func() bool { return watch.promoted().After(began) })
		}
	}
	if !s.needsEnd {
		awaitPromotion()
	}
	<-time.After(time.Until(began.Add(s.hold)))
	if s.needsEnd {
		s.mend(t, c, leader)
		awaitPromotion()
	}
	promotion := watch.promoted()
	o.awaitLoans(t, 60, time.Now())
	if s.mend != nil && !s.needsEnd {
		s.mend(t, c, leader)
	}
	c.awaitHealth(t)
	o.awaitLoans(t, 30, time.Now())
	o.end()
	watch.end()

	lost, over := l.judge(t, first, o)
	if lost > 0 || over > 0 || len(o.bad) > 0 {
		t.Errorf("%d acknowledged loans are lost, %d patrons are over the limit, answers: %.2000q", lost, over, o.bad)
	}
	longest := 30 * time.Second // the default of REQUEST_TIMEOUT
	if all {
		longest = 12 * time.Second
	}
	if o.longest > longest {
		t.Errorf("an answer came after %s, want at most %s", o.longest, longest)
	}
	for way, name := range ways {
		pause, after := o.findPause(way, began), "-"
		if s.promotes {
			first := o.findFirst(way, promotion)
			took := first.Sub(watch.confirmedBefore(first))
			after = fmt.Sprintf("%.1f", took.Seconds())
			if all && s.first > 0 && took > s.first {
				t.Errorf("%s: the first loan came %s after commits were confirmed, want at most %s", name, took, s.first)
			}
		}
		if all && s.pause > 0 && pause > s.pause && way == hostsInURL {
			t.Errorf("%s: no loan for %s, want at most %s", name, pause, s.pause)
		}
		l.judgeLines(t, way, pause)
		rows += fmt.Sprintf("| %s | %s | %.1f | %s | %d | %d | %.1f |\n",
			s.name, name, pause.Seconds(), after, lost, over, o.longest.Seconds())
	}
	return rows
}

// checkDoctor fails the test unless doctor sees that a synchronous standby confirms commits.
func (l *library) checkDoctor(t *testing.T) {
	t.Helper()
	cfg := storage.DefaultConfig()
	if err := config.Load(&cfg, []string{"DATABASE_URL=" + urlOf(l.cluster.hub.address)}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (storage.Listing{Tenant: tenant, Out: &out}).Diagnose(t.Context(), cfg, 5*time.Second); err != nil {
		t.Logf("doctor: %v", err) // a cluster in memory has other faults
	}
	if !regexp.MustCompile(`(?m)^standby +ok +1 synchronous standby`).Match(out.Bytes()) {
		t.Errorf("doctor does not see the synchronous standby:\n%s", out.String())
	}
}

// awaitReady waits until both circulations, and so their storages, are ready.
func (l *library) awaitReady(t *testing.T) {
	t.Helper()
	for _, at := range l.circulations {
		await(t, "circulation is ready", func() bool {
			a, err := stack.Client{Base: at.Base}.Do(t.Context(), http.MethodGet, "/admin/health/ready", nil)
			return err == nil && a.Status == http.StatusOK
		})
	}
}

// judge counts the acknowledged loans that are lost, and the patrons with too many.
func (l *library) judge(t *testing.T, first int, o *load) (lost, over int) {
	t.Helper()
	leader := l.cluster.find(t, "leader")
	err := l.cluster.read(t, leader, &lost, `SELECT count(*) FROM unnest($1::uuid[]) AS lent (id)
		WHERE NOT EXISTS (SELECT FROM `+schema+`.loan WHERE loan.id = lent.id)`, o.loans)
	if err == nil {
		err = l.cluster.read(t, leader, &over, `SELECT count(*) FROM (SELECT FROM `+schema+`.loan WHERE is_open
			GROUP BY user_id HAVING count(*) > $1) AS over`, limit)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(o.loans) < 50 {
		t.Errorf("%d loans, want a load", len(o.loans))
	}
	return lost, over
}

// judgeLines fails the test if a storage logged an outage more than once, or no end of it.
func (l *library) judgeLines(t *testing.T, way int, pause time.Duration) {
	t.Helper()
	count := l.lines.take(way)
	for i := range begins {
		if count[begins[i]] > 1 || count[begins[i]] != count[ends[i]] {
			t.Errorf("%s: the log has %v, want one begin and one end", ways[way], count)
		}
	}
	if pause > 8*time.Second && len(count) == 0 { // a COMMIT may wait for 5 s
		t.Errorf("%s: the log has no line about an outage of %s", ways[way], pause)
	}
}

// watch notes when another node, or a former primary again, confirmed a first commit, and which
// commits had to wait. Patroni chooses a synchronous standby after the first commit, and commits wait
// until it follows.
type watch struct {
	wg   sync.WaitGroup
	stop chan struct{}
	mu   sync.Mutex
	last time.Time
	ends []time.Time // of waits, in order
}

// patient is how long a commit takes at most that did not have to wait.
const patient = 300 * time.Millisecond

// confirmSQL is a commit. A primary answers it once its synchronous standby has it: before that, no
// service gets one confirmed there.
const confirmSQL = `SELECT pg_logical_emit_message(true, 'watch', '') IS NOT NULL`

// startWatch sends commits to each node. A standby refuses them.
func startWatch(t *testing.T, c *cluster) *watch {
	w := &watch{stop: make(chan struct{})}
	for _, n := range c.nodes {
		w.wg.Go(func() {
			commits := committer{node: n}
			defer commits.close()
			was := true // the first answer is no change
			for {
				sent := time.Now()
				confirms, err := commits.send(t.Context())
				if _, refused := errors.AsType[*pgconn.PgError](err); confirms || refused {
					if confirms {
						w.noteCommit(!was, sent)
					}
					was = confirms
				}
				select {
				case <-w.stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return w
}

// committer sends commits to a node. It connects again only if the connection is lost.
type committer struct {
	node *machine
	conn *pgx.Conn // nil for none
}

// send reports whether a commit is confirmed within 5 s.
func (c *committer) send(ctx context.Context) (confirmed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if c.conn == nil || c.conn.IsClosed() {
		if c.conn, err = pgx.Connect(ctx, urlOf(c.node.address)); err != nil {
			return false, err
		}
	}
	err = c.conn.QueryRow(ctx, confirmSQL).Scan(&confirmed)
	return confirmed, err
}

func (c *committer) close() {
	if c.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.conn.Close(ctx) // its node may be gone
	}
}

// noteCommit notes a confirmed commit, whether it is the first one of its node, and when it was sent.
func (w *watch) noteCommit(first bool, sent time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if first {
		w.last = now
	}
	if first || now.Sub(sent) > patient {
		w.ends = append(w.ends, now)
	}
}

// confirmedBefore returns since when commits were confirmed without a wait, at that time.
func (w *watch) confirmedBefore(at time.Time) (since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range w.ends {
		if !end.After(at) {
			since = end
		}
	}
	return since
}

// promoted returns when that was last, the zero time for never.
func (w *watch) promoted() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

func (w *watch) end() {
	close(w.stop)
	w.wg.Wait()
}
