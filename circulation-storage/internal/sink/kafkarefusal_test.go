package sink_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/sink"
)

// A broker refuses a batch as a whole. Messages that it takes alone are received.
func TestKafka_RefusesNoMessageForItsBatch(t *testing.T) {
	t.Parallel()
	b := startBroker(t, 0)
	const topic, most = "loan", 4096
	to := openSink(t, sink.Settings{Brokers: []string{b.address()}, Environment: "e", Retention: time.Hour})
	id := pgtest.Tenant(t)
	message := func(size int) events.Message {
		value := make([]byte, size)
		_, _ = rand.Read(value) // compression does not shorten it
		return events.Message{Topic: topic, Key: "k", Tenant: id, Value: value}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if errs := to.Send(ctx, []events.Message{message(1)}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	limitBatches(t, b.address(), topic, most)
	const large = 7
	messages := make([]events.Message, 20)
	for i := range messages {
		messages[i] = message(most / 4)
	}
	messages[large] = message(2 * most)
	for i, err := range to.Send(ctx, messages) {
		if refused := errors.Is(err, events.ErrRefused); refused != (i == large) || err != nil && !refused {
			t.Errorf("message %d: got %v, want message %d alone refused", i, err, large)
		}
	}
}

// limitBatches makes the broker refuse larger batches of a topic.
func limitBatches(t *testing.T, address, topic string, most int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	limit := kadm.AlterConfig{Op: kadm.SetConfig, Name: "max.message.bytes", Value: new(fmt.Sprint(most))}
	altered, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{limit}, topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range altered {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
}
