package ha_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/integration-tests/stack"
)

const (
	limit   = 3 // loans of a patron
	tenant  = "ha"
	schema  = tenant + "_mod_circulation_storage"
	desks   = 4                     // of each circulation
	perDesk = 60 * time.Millisecond // between two check-outs
)

// The ways to the primary, one for each storage.
var ways = []string{"HAProxy", "hosts in the URL"}

const hostsInURL = 1 // in ways

// library is a tenant at two circulations and two storages, which reach the cluster by different ways.
type library struct {
	*stack.Library
	circulations []stack.Client
	cluster      *cluster
	lines        *lines
	stop         func() error
	made         int // patrons, with items
}

func startLibrary(t *testing.T, c *cluster) *library {
	t.Helper()
	var hosts []string
	for _, n := range c.nodes {
		hosts = append(hosts, n.address)
	}
	l := &library{cluster: c, lines: &lines{}}
	s, err := stack.Start(t.Context(), stack.Options{
		DatabaseURL: urlOf(c.hub.address), Storages: 2, Circulations: 2,
		DatabaseVia: func(i int, proxy string) string { return []string{proxy, urlOf(hosts...)}[i] },
		StorageEnv:  []string{"DATABASE_MAX_CONNS=20"}, CirculationEnv: []string{"CHECKOUT_LOCK_FEATURE_ENABLED=true"},
		Log: slog.New(&recorder{lines: l.lines}),
	})
	if err != nil {
		t.Fatal(err)
	}
	l.stop = s.Stop
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: desks}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	l.Library, err = stack.NewLibrary(t.Context(), stack.Client{Base: s.Storages[0], Tenant: tenant}, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range s.Circulations {
		l.circulations = append(l.circulations, stack.Client{Base: base, Tenant: tenant, HTTP: client})
	}
	return l
}

const fillSQL = `
WITH patron AS (INSERT INTO ` + schema + `.users (id, jsonb)
	SELECT id, jsonb_build_object('id', id, 'username', 'p' || n, 'barcode', 'p' || n, 'active', true,
		'patronGroup', $3::text, 'personal', jsonb_build_object('lastName', 'Reader'))
	FROM (SELECT gen_random_uuid() AS id, n FROM generate_series($1::int, $2::int) AS n) AS made)
INSERT INTO ` + schema + `.item (id, jsonb)
SELECT id, jsonb_build_object('id', id, '_version', 1, 'barcode', 'i' || n || '-' || copy, 'holdingsRecordId', $4::text,
	'materialTypeId', $5::text, 'permanentLoanTypeId', $6::text, 'effectiveLocationId', $7::text,
	'status', jsonb_build_object('name', 'Available'))
FROM (SELECT gen_random_uuid() AS id, n, copy
	FROM generate_series($1::int, $2::int) AS n, generate_series(0, 3) AS copy) AS made`

// addPatrons adds n patrons with four items each, and returns the number of the first.
func (l *library) addPatrons(t *testing.T, n int) (first int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), urlOf(l.cluster.find(t, "leader").address))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	first = l.made
	l.made += n
	_, err = conn.Exec(t.Context(), fillSQL, first, l.made-1,
		l.GroupID, l.HoldingsID, l.MaterialTypeID, l.LoanTypeID, l.LocationID)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// load is check-outs at both circulations. The desks of one number serve the same patrons, and try two
// items for each: one of the four exceeds the limit.
type load struct {
	wg   sync.WaitGroup
	stop chan struct{}

	mu      sync.Mutex
	lent    [2][]time.Time // when the answers came
	loans   []string
	bad     []string // answers that are neither a loan nor a refusal that a machine expects
	longest time.Duration
}

func startLoad(t *testing.T, l *library, first, patrons int) *load {
	t.Helper()
	o := &load{stop: make(chan struct{})}
	for way := range ways {
		for desk := range desks {
			o.wg.Go(func() { o.runDesk(t.Context(), l, way, first+desk, first+patrons) })
		}
	}
	return o
}

func (o *load) runDesk(ctx context.Context, l *library, way, patron, end int) {
	tick := time.NewTicker(perDesk)
	defer tick.Stop()
	for ; patron < end; patron += desks {
		for n := range limit - 1 {
			select {
			case <-o.stop:
				return
			case <-tick.C:
			}
			began := time.Now()
			a, err := l.circulations[way].Do(ctx, http.MethodPost, "/circulation/check-out-by-barcode", stack.CheckOut{
				ItemBarcode: fmt.Sprintf("i%d-%d", patron, way*(limit-1)+n), UserBarcode: "p" + strconv.Itoa(patron),
				ServicePointID: l.ServicePointID,
			})
			o.note(way, a, err, time.Since(began))
		}
	}
}

// refusals are the answers without a loan that a machine expects.
var refusals = []int{http.StatusUnprocessableEntity, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

func (o *load) note(way int, a stack.Answer, err error, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.longest = max(o.longest, took)
	var loan struct{ ID string }
	switch {
	case err == nil && a.Status == http.StatusCreated && a.JSON(&loan) == nil:
		o.lent[way] = append(o.lent[way], time.Now())
		o.loans = append(o.loans, loan.ID)
	case err == nil && slices.Contains(refusals, a.Status):
	default:
		o.bad = append(o.bad, fmt.Sprintf("%d %s %v", a.Status, a.Body, err))
	}
}

// awaitLoans waits until both ways have lent so many items since then.
func (o *load) awaitLoans(t *testing.T, n int, since time.Time) {
	t.Helper()
	await(t, fmt.Sprintf("%d more loans", n), func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, times := range o.lent {
			if len(times) < n || times[len(times)-n].Before(since) {
				return false
			}
		}
		return true
	})
}

// end ends the load.
func (o *load) end() {
	close(o.stop)
	o.wg.Wait()
}

// findPause returns the longest time without a loan since then.
func (o *load) findPause(way int, since time.Time) (longest time.Duration) {
	times := o.lent[way]
	for i := 1; i < len(times); i++ {
		if times[i].After(since) {
			longest = max(longest, times[i].Sub(times[i-1]))
		}
	}
	return longest
}

// findFirst returns when the first item was lent since then.
func (o *load) findFirst(way int, since time.Time) time.Time {
	for _, lent := range o.lent[way] {
		if lent.After(since) {
			return lent
		}
	}
	return since
}

// lines counts the lines of the storages' logs about outages.
type lines struct {
	mu    sync.Mutex
	count [2]map[string]int
}

// take returns the counts of a storage so far, and begins anew.
func (l *lines) take(storage int) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.count[storage]
	l.count[storage] = nil
	return taken
}

// recorder is the log of one instance.
type recorder struct {
	lines    *lines
	service  string
	instance int64
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithGroup(string) slog.Handler            { return r }

func (r *recorder) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *r
	for _, a := range attrs {
		switch a.Key {
		case "service":
			next.service = a.Value.String()
		case "instance":
			next.instance = a.Value.Int64()
		}
	}
	return &next
}

// The begins and the ends of outages.
var (
	begins = []string{"the database is lost", "the database cannot write"}
	ends   = []string{"the database is back", "the database can write again"}
)

func (r *recorder) Handle(_ context.Context, line slog.Record) error {
	if r.service != "circulation-storage" || !slices.Contains(slices.Concat(begins, ends), line.Message) {
		return nil
	}
	r.lines.mu.Lock()
	defer r.lines.mu.Unlock()
	if r.lines.count[r.instance] == nil {
		r.lines.count[r.instance] = map[string]int{}
	}
	r.lines.count[r.instance][line.Message]++
	return nil
}
