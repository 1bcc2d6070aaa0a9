package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	saslplain "github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"checkoutlock/circulation-storage/internal/events"
)

const (
	// produceTimeout is how long a broker may take for a batch. It is shorter than a turn, so that a slow
	// broker is asked again.
	produceTimeout = 2 * time.Second
	// partitions of a new topic, as in FOLIO. The broker chooses the number of replicas.
	partitions, replicas = 10, -1
)

// kafka sends messages to Kafka, with the partitions of Java's client.
type kafka struct {
	client *kgo.Client

	mu     sync.Mutex
	topics map[string]bool // that exist
}

// openKafka does not wait for a broker.
//
// The client's own idempotence is off. With it a message that was sent once cannot be given up, so
// a lost broker would stop the delivery. Repeats come from this delivery anyway.
func openKafka(s Settings) (*kafka, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(s.Brokers...), kgo.ClientID("circulation-storage"),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.ProduceRequestTimeout(produceTimeout), kgo.RequestTimeoutOverhead(produceTimeout), kgo.DialTimeout(produceTimeout),
		kgo.RecordDeliveryTimeout(2 * produceTimeout), kgo.MetadataMinAge(100 * time.Millisecond),
	}
	if s.TLS {
		trusted, err := s.readTLS()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(trusted))
	}
	scrammed := scram.Auth{User: s.User, Pass: s.Password}
	switch s.SASL {
	case "":
	case scramSHA256:
		options = append(options, kgo.SASL(scrammed.AsSha256Mechanism()))
	case scramSHA512:
		options = append(options, kgo.SASL(scrammed.AsSha512Mechanism()))
	default:
		options = append(options, kgo.SASL(saslplain.Auth{User: s.User, Pass: s.Password}.AsMechanism()))
	}
	client, err := kgo.NewClient(options...)
	return &kafka{client: client, topics: map[string]bool{}}, err
}

// Ping implements events.Sink.
func (k *kafka) Ping(ctx context.Context) error { return k.client.Ping(ctx) }

// Send implements events.Sink. A broker refuses a batch as a whole, also for one of its messages or for
// their size together. So each refused message is sent once more, alone.
func (k *kafka) Send(ctx context.Context, messages []events.Message) []error {
	errs := k.produce(ctx, messages)
	for i, err := range errs {
		if errors.Is(err, events.ErrRefused) {
			errs[i] = k.produce(ctx, messages[i:i+1])[0]
		}
	}
	return errs
}

// produce sends messages in batches as the client makes them.
func (k *kafka) produce(ctx context.Context, messages []events.Message) []error {
	type result struct {
		index int
		err   error
	}
	results := make(chan result, len(messages))
	errs := make([]error, len(messages))
	failed, sent := k.createTopics(ctx, messages), 0
	for i, m := range messages {
		if errs[i] = failed[m.Topic]; errs[i] != nil {
			continue
		}
		errs[i] = context.DeadlineExceeded
		sent++
		r := &kgo.Record{Topic: m.Topic, Value: m.Value, Headers: []kgo.RecordHeader{
			{Key: "folio.tenantId", Value: []byte(m.Tenant.String())}, {Key: "x-okapi-tenant", Value: []byte(m.Tenant.String())},
		}}
		if m.Key != "" {
			r.Key = []byte(m.Key)
		}
		k.client.Produce(ctx, r, func(_ *kgo.Record, err error) { results <- result{i, err} })
	}
	for range sent {
		select {
		case r := <-results:
			errs[r.index] = markRefused(r.err)
			k.forget(messages[r.index].Topic, r.err)
		case <-ctx.Done(): // the client may wait longer for a broker that does not answer
			return errs
		}
	}
	return errs
}

// markRefused makes the errors of a record itself ErrRefused.
func markRefused(err error) error {
	if errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.InvalidRecord) {
		return fmt.Errorf("%w: %w", events.ErrRefused, err)
	}
	return err
}

// createTopics creates those that this process has not seen. Brokers need not do so by themselves. It
// returns why, by topic, some cannot be created.
func (k *kafka) createTopics(ctx context.Context, messages []events.Message) map[string]error {
	var unseen []string
	k.mu.Lock()
	for _, m := range messages {
		if !k.topics[m.Topic] && !slices.Contains(unseen, m.Topic) {
			unseen = append(unseen, m.Topic)
		}
	}
	k.mu.Unlock()
	if len(unseen) == 0 {
		return nil
	}
	failed := map[string]error{}
	made, err := kadm.NewClient(k.client).CreateTopics(ctx, partitions, replicas, nil, unseen...)
	if err != nil {
		for _, topic := range unseen {
			failed[topic] = fmt.Errorf("creating topics: %w", err)
		}
		return failed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, topic := range made {
		// Without the right to create topics, they may exist.
		if topic.Err == nil || errors.Is(topic.Err, kerr.TopicAlreadyExists) || errors.Is(topic.Err, kerr.TopicAuthorizationFailed) ||
			errors.Is(topic.Err, kerr.ClusterAuthorizationFailed) {
			k.topics[topic.Topic] = true
			continue
		}
		failed[topic.Topic] = fmt.Errorf("creating topic %s: %w", topic.Topic, topic.Err)
	}
	return failed
}

// forget lets a topic that was deleted be created again.
func (k *kafka) forget(topic string, err error) {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.topics, topic)
	}
}
