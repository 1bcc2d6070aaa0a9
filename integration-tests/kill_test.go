package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
)

// Two storages are killed in turn while they deliver, and machines lend and take back books meanwhile.
func TestEvents_OfKilledStorages(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	database, program := createDatabase(t), buildProgram(t, "circulation-storage")
	ports, storages := [2]int{findFreePort(t), findFreePort(t)}, [2]process{}
	start := func(i int) {
		storages[i] = startProgram(t, program, ports[i], "DATABASE_URL="+database, "DATABASE_MAX_CONNS=16",
			"EVENTS_BROKERS="+b.address())
	}
	start(0)
	p := startPair(t, stack.Options{ // its own storage delivers nothing
		DatabaseURL: database, Circulations: 2, CirculationEnv: enableLock(),
		Via: func(i int, _ string) string { return fmt.Sprintf("http://127.0.0.1:%d", ports[i]) },
	}, 1)
	b.createTopic(t, "folio."+p.Storage.Tenant+".circulation.loan")
	waitUntil(t, patience, "the first storage turns on the events", func() (on bool) {
		queryValue(t, database, &on, `SELECT NOT EXISTS (
			SELECT FROM pg_trigger WHERE tgname = 'record_event' AND tgenabled = 'D')`)
		return on
	})
	start(1)
	lend, end := p.startLoans(t, 8)
	lend(100)
	b.awaitMore(t)
	for i := range storages {
		lend(100)
		b.loseOne(t)
		storages[i].kill(t)
		b.awaitMore(t) // through the other one
		start(i)
	}
	end()
	waitUntil(t, patience, "all events are delivered", func() bool {
		var left int
		queryValue(t, database, &left, "SELECT count(*) FROM "+p.tableName("outbox"))
		return left == 0
	})
	loans := map[string]record{}
	queryValue(t, database, &loans, "SELECT jsonb_object_agg(id, jsonb) FROM "+p.tableName("loan"))
	checkLoanEvents(t, b.readAll(t), loans)
}

// startLoans runs machines until the test ends or end is called. Each lends and takes back a book of each
// of its patrons, and changes to the other circulation after a failure. lend adds to the loans that they
// are to make, and end waits for these.
func (p *pair) startLoans(t *testing.T, machines int) (lend func(loans int), end func()) {
	t.Helper()
	const each = 5
	var running sync.WaitGroup
	ahead := make(chan struct{}, 1000)
	for first := range machines {
		_, patrons := p.addPatrons(t, each)
		books := p.addBooks(t, each)
		running.Go(func() {
			at, n := first, 0
			for range ahead {
				if !p.lendAndTakeBack(t, at, books[n%each], patrons[n%each]) {
					at++
				}
				n++
			}
		})
	}
	end = sync.OnceFunc(func() {
		close(ahead)
		running.Wait()
	})
	t.Cleanup(end)
	return func(loans int) {
		for range loans {
			ahead <- struct{}{}
		}
	}, end
}

// lendAndTakeBack reports whether both calls were answered by a service that works.
func (p *pair) lendAndTakeBack(t *testing.T, at int, book, patron string) bool {
	works := true
	desk := p.machines[at%len(p.machines)]
	desk.Header = http.Header{okapi.UserIDHeader: {uuid.NewString()}} // a check-in needs one
	for _, call := range []struct {
		path string
		body any
	}{
		{checkOutPath, p.newCheckOut(book, patron)},
		{"/circulation/check-in-by-barcode", record{
			"itemBarcode": book, "servicePointId": p.ServicePointID, "checkInDate": "2030-10-01T09:30:00.000Z",
		}},
	} {
		a, err := desk.Do(context.WithoutCancel(t.Context()), http.MethodPost, call.path, call.body)
		if err != nil {
			t.Errorf("%s: %v", call.path, err)
		}
		works = works && a.Status < http.StatusInternalServerError
	}
	return works
}

// checkLoanEvents fails the test unless the events lead, each from where the loan's last one ended, to the
// loans. A patron's next loan comes after the end of the last one. Repeats do not count.
func checkLoanEvents(t *testing.T, values [][]byte, loans map[string]record) {
	t.Helper()
	seen, led, open := map[string]bool{}, map[string]record{}, map[any]bool{}
	for _, value := range values {
		var e struct {
			ID, Type string
			Data     struct{ Old, New record }
		}
		if err := json.Unmarshal(value, &e); err != nil {
			t.Fatal(err)
		}
		if seen[e.ID] {
			continue
		}
		seen[e.ID] = true
		id, patron := fmt.Sprint(e.Data.New["id"]), e.Data.New["userId"]
		if !reflect.DeepEqual(e.Data.Old, led[id]) {
			t.Errorf("loan %s: %s begins with %v, but the events so far end with %v", id, e.Type, e.Data.Old, led[id])
		}
		if e.Type == "CREATED" && open[patron] {
			t.Errorf("loan %s is created before the events of the patron's last one", id)
		}
		led[id] = e.Data.New
		open[patron] = readPart(e.Data.New, "status.name") == "Open"
	}
	for id, loan := range loans {
		if !reflect.DeepEqual(led[id], loan) {
			t.Errorf("the events lead to %v, but the loan is %v", led[id], loan)
		}
	}
	if len(led) != len(loans) {
		t.Errorf("%d loans have events, want %d", len(led), len(loans))
	}
	t.Logf("%d loans, %d events in %d records", len(loans), len(seen), len(values))
}

// broker is a Kafka broker with the events of the loans of one library, in one partition.
type broker struct {
	*kfake.Cluster
	client *kgo.Client
	topic  string
}

func startBroker(t *testing.T) *broker {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &broker{Cluster: c}
}

func (b *broker) address() string { return strings.Join(b.ListenAddrs(), ",") }

// createTopic is called before there are events of loans.
func (b *broker) createTopic(t *testing.T, name string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.ListenAddrs()...), kgo.ConsumeTopics(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, name); err != nil {
		t.Fatal(err)
	}
	b.client, b.topic = client, name
}

// count returns how many records there are.
func (b *broker) count(t *testing.T) int {
	t.Helper()
	ends, err := kadm.NewClient(b.client).ListEndOffsets(t.Context(), b.topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(b.topic, 0)
	return int(end.Offset)
}

// awaitMore waits for more records than a killed process may have sent: it sends one of each patron at once.
func (b *broker) awaitMore(t *testing.T) {
	t.Helper()
	before := b.count(t)
	waitUntil(t, patience, "events are delivered", func() bool { return b.count(t) > before+100 })
}

// loseOne loses the next request with events, and returns while its process waits for the answer.
func (b *broker) loseOne(t *testing.T) {
	t.Helper()
	var lost atomic.Bool
	b.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		lost.Store(true)
		return nil, nil, true
	})
	waitUntil(t, patience, "events are sent", lost.Load)
}

// readAll returns the values of all records.
func (b *broker) readAll(t *testing.T) (values [][]byte) {
	t.Helper()
	for count := b.count(t); len(values) < count; {
		fetched := b.client.PollFetches(t.Context())
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		fetched.EachRecord(func(r *kgo.Record) { values = append(values, r.Value) })
	}
	return values
}
