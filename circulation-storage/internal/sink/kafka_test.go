package sink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/sink"
	"checkoutlock/devpostgres"
	"checkoutlock/schemas/okapi"
)

// broker is a Kafka broker that keeps its records when it is killed. After each start it may refuse
// some events of one partition, so that others of the same patron could overtake them.
type broker struct {
	t        *testing.T
	port     int
	dir      string
	refusals int // after each start
	now      *kfake.Cluster
}

func startBroker(t *testing.T, refusals int) *broker {
	t.Helper()
	port, err := devpostgres.FindFreePort(t.Context()) // clients get another one while the broker is away
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{t: t, port: port, dir: t.TempDir(), refusals: refusals}
	b.start()
	t.Cleanup(func() { b.now.Close() })
	return b
}

func (b *broker) start() {
	b.t.Helper()
	var err error
	b.now, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(b.port), kfake.DataDir(b.dir), kfake.SyncWrites())
	if err != nil {
		b.t.Fatal(err)
	}
	if b.refusals > 0 {
		b.now.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{0}, Count: b.refusals})
	}
}

func (b *broker) address() string { return fmt.Sprintf("127.0.0.1:%d", b.port) }

// uncounted is an events.Observer that ignores all.
type uncounted struct{}

func (uncounted) Delivered(string, int)      {}
func (uncounted) Failed(events.Failure, int) {}
func (uncounted) Lag(time.Duration)          {}

// openSink opens a sink that is closed when the test ends.
func openSink(t *testing.T, s sink.Settings) events.Sink {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	to, closeSink, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeSink)
	return to
}

// startProcess delivers the tenant's events through connections of its own. kill cuts all of them,
// so that the process keeps its lease and its answers are lost. stop ends it in order.
func startProcess(t *testing.T, id okapi.Tenant, s sink.Settings) (kill, stop func()) {
	t.Helper()
	db := pgtest.Open(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	to, closeSink, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	d := events.New(postgres.NewOutboxStore(db), to, s.Names(),
		func(context.Context) ([]okapi.Tenant, error) { return []okapi.Tenant{id}, nil }, uncounted{}, log)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		closeSink()
		db.Close()
	})
	kill = func() {
		db.Close()
		closeSink()
		stop()
	}
	t.Cleanup(stop)
	return kill, stop
}

// waitUntil asks again and again.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("not in time: " + what)
		}
	}
}

// sent is an event that a reader found first.
type sent struct {
	at     time.Time // when the process that delivered it sent it
	patron int
	n      int
}

// readAll reads the topic until it has the events of all patrons, and returns how many records it
// read. Only the first record of each event counts.
func readAll(t *testing.T, address, topic string, count int) (first map[string]sent, records int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first = map[string]sent{}
	for len(first) < count {
		fetched := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d events were received", len(first), count)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			records++
			var value struct {
				ID   string
				Data struct {
					New struct{ Patron, N int }
				}
			}
			if err := json.Unmarshal(r.Value, &value); err != nil {
				t.Error(err)
			}
			if f, found := first[value.ID]; !found || r.Timestamp.Before(f.at) {
				first[value.ID] = sent{r.Timestamp, value.Data.New.Patron, value.Data.New.N}
			}
		})
	}
	return first, records
}

// The broker dies and comes back, and the process that delivers dies, while events are written.
func TestKafka_NothingIsLostWhenBrokerOrProcessDies(t *testing.T) {
	t.Parallel()
	const patrons, each = 8, 60
	db, id := pgtest.New(t)
	b := startBroker(t, 3)
	s := sink.Settings{Brokers: []string{b.address()}, Environment: "folio"}
	kill, _ := startProcess(t, id, s)
	startProcess(t, id, s)
	count := func(query string) (n int) {
		query = strings.ReplaceAll(query, "{schema}", postgres.SchemaName(id))
		if err := db.Pool().QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	written := func() int { return count(`SELECT coalesce(max(id), 0) FROM {schema}.outbox`) }
	left := func() int { return count(`SELECT count(*) FROM {schema}.outbox`) }

	add := strings.ReplaceAll(`INSERT INTO {schema}.outbox (event_type, topic, record_id, patron_id, new)
		VALUES ('CREATED', 'loan', gen_random_uuid(), $1, jsonb_build_object('patron', $2::int, 'n', $3::int))`,
		"{schema}", postgres.SchemaName(id))
	var writing sync.WaitGroup
	half, goOn := make(chan struct{}, patrons), make(chan struct{})
	for p := range patrons {
		patron := uuid.New()
		writing.Go(func() {
			for n := range each {
				if n == each/2 {
					half <- struct{}{}
					<-goOn
				}
				if _, err := db.Pool().Exec(t.Context(), add, patron, p, n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	waitUntil(t, "the first events are delivered", func() bool { return written() > 0 && left() < written() })
	b.now.Close()
	for range patrons {
		<-half
	}
	waitUntil(t, "events wait for the broker", func() bool { return left() > 0 })
	b.start()
	close(goOn)
	waitUntil(t, "the delivery goes on", func() bool { return left() < patrons*each/2 })
	kill()
	writing.Wait()
	waitUntil(t, "all events are delivered", func() bool { return left() == 0 })

	topic := "folio." + id.String() + ".circulation.loan"
	first, records := readAll(t, b.address(), topic, patrons*each)
	if len(first) != patrons*each {
		t.Errorf("got %d events, want %d", len(first), patrons*each)
	}
	t.Logf("%d events in %d records", len(first), records)
	at := map[int][]time.Time{}
	for p := range patrons {
		at[p] = make([]time.Time, each)
	}
	for _, e := range first {
		at[e.patron][e.n] = e.at
	}
	for p, times := range at {
		for n := 1; n < each; n++ {
			if times[n].Before(times[n-1]) {
				t.Errorf("patron %d: event %d was sent before event %d", p, n, n-1)
			}
		}
	}
}

// A topic that cannot be created keeps back its own messages. The others are created once.
func TestKafka_GoesOnBesideATopicThatCannotBeCreated(t *testing.T) {
	t.Parallel()
	b := startBroker(t, 0)
	b.now.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "forbidden", Err: kerr.PolicyViolation, Count: -1,
	})
	var mu sync.Mutex
	var asked []string
	note := func(r kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		if r, ok := r.(*kmsg.CreateTopicsRequest); ok {
			for _, topic := range r.Topics {
				asked = append(asked, topic.Topic)
			}
		}
		return nil, nil, false
	}
	b.now.ControlKey(kmsg.CreateTopics.Int16(), note)
	to := openSink(t, sink.Settings{Brokers: []string{b.address()}, Environment: "e", Retention: time.Hour})
	id := pgtest.Tenant(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		errs := to.Send(ctx, []events.Message{
			{Topic: "loan", Key: "k", Tenant: id, Value: []byte("1")},
			{Topic: "forbidden", Key: "k", Tenant: id, Value: []byte("2")},
			{Topic: "request", Key: "k", Tenant: id, Value: []byte("3")},
			{Topic: "loan", Key: "k", Tenant: id, Value: []byte("4")},
		})
		if errs[0] != nil || !errors.Is(errs[1], kerr.PolicyViolation) || errs[2] != nil || errs[3] != nil {
			t.Errorf("got %v, want the second one alone kept back", errs)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"loan", "forbidden", "request", "forbidden"}; !slices.Equal(asked, want) {
		t.Errorf("topics to create were %q, want %q", asked, want)
	}
}

// What a broker never takes is refused. What was not sent is not received.
func TestKafka_DistinguishesRefusalsFromFailures(t *testing.T) {
	t.Parallel()
	b := startBroker(t, 0)
	b.now.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "bad", Err: kerr.InvalidRecord, Count: -1})
	s := sink.Settings{Brokers: []string{b.address()}, Environment: "e", Retention: time.Hour}
	id := pgtest.Tenant(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	loan := events.Message{Topic: "loan", Tenant: id, Value: []byte("1")}
	to := openSink(t, s)
	errs := to.Send(ctx, []events.Message{
		loan, {Topic: "loan", Tenant: id, Value: make([]byte, 2<<20)}, {Topic: "bad", Tenant: id, Value: []byte("2")},
	})
	if errs[0] != nil || !errors.Is(errs[1], events.ErrRefused) || !errors.Is(errs[2], events.ErrRefused) {
		t.Errorf("got %v, want the last two refused", errs)
	}
	for _, err := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed} {
		b.now.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: err})
		if errs := openSink(t, s).Send(ctx, []events.Message{loan}); errs[0] != nil {
			t.Errorf("without the right to create a topic that exists: got %v", errs[0])
		}
	}
	cancel()
	if errs := to.Send(ctx, slices.Repeat([]events.Message{loan}, 20)); slices.Contains(errs, nil) {
		t.Errorf("after the time: got %v, want no message received", errs)
	}
}

func TestKafka_SASL(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("SCRAM-SHA-512", "events", "secret"), kfake.Superuser("SCRAM-SHA-256", "events", "secret"),
		kfake.Superuser("PLAIN", "events", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	id := pgtest.Tenant(t)
	for name, tt := range map[string]struct {
		mechanism, password string
		received            bool
	}{
		"SHA-512":        {mechanism: "SCRAM-SHA-512", password: "secret", received: true},
		"SHA-256":        {mechanism: "SCRAM-SHA-256", password: "secret", received: true},
		"plain":          {mechanism: "PLAIN", password: "secret", received: true},
		"wrong password": {mechanism: "PLAIN", password: "guess", received: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := openSink(t, sink.Settings{
				Brokers: cluster.ListenAddrs(), SASL: tt.mechanism, User: "events", Password: tt.password,
				Environment: "e", Retention: time.Hour,
			})
			ctx, cancel := context.WithTimeout(t.Context(), sendTime(tt.received))
			defer cancel()
			for i, err := range to.Send(ctx, []events.Message{
				{Topic: "t", Key: "k", Tenant: id, Value: []byte("1")}, {Topic: "u", Tenant: id, Value: []byte("2")},
			}) {
				if (err == nil) != tt.received {
					t.Errorf("message %d: got %v, want received %t", i, err, tt.received)
				}
			}
		})
	}
}
