package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/okapi"
)

// harness is the outbox of a tenant, and what was received of it.
type harness struct {
	t     *testing.T
	db    *postgres.DB
	id    okapi.Tenant
	store *postgres.OutboxStore
	sink  *memory
	brief time.Duration // how long the processes send a batch, under a long lease; 0 as for users
	names events.Names
	log   io.Writer // what the processes log
}

func newHarness(t *testing.T) harness {
	t.Helper()
	db, id := pgtest.New(t)
	received := &memory{changed: make(chan struct{}, 1)}
	names := events.Names{Environment: "folio", PubSub: "mod-pubsub-2.20.0"}
	return harness{t: t, db: db, id: id, store: postgres.NewOutboxStore(db), sink: received, names: names, log: t.Output()}
}

func (h harness) ctx() context.Context { return okapi.WithTenant(h.t.Context(), h.id) }

func (h harness) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", postgres.SchemaName(h.id))
}

func (h harness) exec(statement string, args ...any) {
	h.t.Helper()
	if _, err := h.db.Pool().Exec(h.t.Context(), h.sql(statement), args...); err != nil {
		h.t.Fatal(err)
	}
}

const addSQL = `INSERT INTO {schema}.outbox (event_type, topic, record_id, patron_id, new)
VALUES ('CREATED', 'loan', gen_random_uuid(), $1, jsonb_build_object('n', $2::text))`

// add adds an event of a patron in a transaction of its own.
func (h harness) add(patron uuid.UUID, n string) {
	h.t.Helper()
	h.exec(addSQL, patron, n)
}

// left returns how many events wait.
func (h harness) left() (n int) {
	h.t.Helper()
	if err := h.db.Pool().QueryRow(h.t.Context(), h.sql(`SELECT count(*) FROM {schema}.outbox`)).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// addMany adds an event of each of count patrons.
func (h harness) addMany(n string, count int) {
	h.t.Helper()
	h.exec(`INSERT INTO {schema}.outbox (event_type, topic, record_id, patron_id, new)
		SELECT 'CREATED', 'loan', gen_random_uuid(), gen_random_uuid(), jsonb_build_object('n', $1::text)
		  FROM generate_series(1, $2)`, n, count)
}

// aside returns how many events were set aside.
func (h harness) aside() (n int) {
	h.t.Helper()
	const asideSQL = `SELECT count(refused) FROM {schema}.outbox`
	if err := h.db.Pool().QueryRow(h.t.Context(), h.sql(asideSQL)).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// start starts a process that delivers to a sink, and returns what stops it.
func (h harness) start(sink events.Sink) (stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	d := events.New(h.store, sink, h.names,
		func(context.Context) ([]okapi.Tenant, error) { return []okapi.Tenant{h.id}, nil }, h.sink,
		slog.New(slog.NewTextHandler(h.log, nil)))
	d.SetInterval(20 * time.Millisecond)
	if h.brief > 0 {
		d.SetLease(time.Minute, h.brief)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	h.t.Cleanup(stop)
	return stop
}

// await waits until the sink has received n events.
func (h harness) await(n int) []string {
	h.t.Helper()
	deadline := time.After(time.Minute)
	for {
		got := h.sink.all()
		if len(got) >= n {
			return got
		}
		select {
		case <-h.sink.changed:
		case <-deadline:
			h.t.Fatalf("got %q, want %d events", got, n)
		}
	}
}

// awaitNone waits until no event is left in the outbox.
func (h harness) awaitNone() {
	h.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for h.left() > 0 {
		<-tick.C
	}
}

// awaitFailure waits until events have failed for the reason why, or the test has.
func (h harness) awaitFailure(why events.Failure) {
	h.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for h.sink.failed(why) == 0 && !h.t.Failed() {
		<-tick.C
	}
}

// memory is a sink, and an observer. It is safe for concurrent use.
type memory struct {
	mu       sync.Mutex
	received []string // "patron n"
	values   []events.Message
	refuse   func(n string) bool // of messages; nil refuses none
	never    func(n string) bool // refuses messages for themselves
	down     bool
	failures map[events.Failure]int
	lag      time.Duration
	lags     []time.Duration // all
	pings    int
	changed  chan struct{}
}

func (m *memory) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *memory) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.received...)
}

func (m *memory) Ping(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pings++
	if m.down {
		return errors.New("away")
	}
	return nil
}

func (m *memory) Send(_ context.Context, messages []events.Message) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	errs := make([]error, len(messages))
	for i, message := range messages {
		n := numberOf(message)
		if m.never != nil && m.never(n) {
			errs[i] = fmt.Errorf("%w: %s", events.ErrRefused, n)
			continue
		}
		if m.down || m.refuse != nil && m.refuse(n) {
			errs[i] = fmt.Errorf("%s is refused", n)
			continue
		}
		m.received = append(m.received, n)
		m.values = append(m.values, message)
	}
	select {
	case m.changed <- struct{}{}:
	default:
	}
	return errs
}

func numberOf(m events.Message) string {
	var value struct {
		Data struct {
			New struct{ N string }
		}
	}
	_ = json.Unmarshal(m.Value, &value)
	return value.Data.New.N
}

func (m *memory) Delivered(string, int) {}

func (m *memory) Failed(why events.Failure, n int) {
	m.set(func() {
		if m.failures == nil {
			m.failures = map[events.Failure]int{}
		}
		m.failures[why] += n
	})
}

func (m *memory) Lag(age time.Duration) {
	m.set(func() { m.lag, m.lags = age, append(m.lags, age) })
}

func (m *memory) failed(why events.Failure) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failures[why]
}
