package events

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"checkoutlock/schemas/okapi"
)

// Topics returns the topics of records, as FOLIO's mod-circulation-storage names them.
func Topics() []string {
	return []string{"loan", "request", "check-in", "circulation-settings", "rules"}
}

// Names are what topics are made of.
type Names struct {
	// Environment is FOLIO's ENV.
	Environment string
	// PubSub is the mod-pubsub with its version that reads the events which FOLIO sends through it; ""
	// for none.
	PubSub string
}

// TopicOf returns the topic of a tenant's records.
func (n Names) TopicOf(id okapi.Tenant, topic string) string {
	return strings.Join([]string{n.Environment, id.String(), "circulation", topic}, ".")
}

// recordEvent is the value of a record's message in FOLIO.
type recordEvent struct {
	ID        uuid.UUID `json:"id"`
	Type      string    `json:"type"`
	Tenant    string    `json:"tenant"`
	Timestamp int64     `json:"timestamp"` // ms since 1970
	Change    struct {
		Old json.RawMessage `json:"old,omitempty"`
		New json.RawMessage `json:"new,omitempty"`
	} `json:"data"`
}

// pubSubEvent is the value of a message of FOLIO's mod-pubsub. Its payload is JSON in a string.
type pubSubEvent struct {
	ID       uuid.UUID `json:"id"`
	Type     string    `json:"eventType"`
	Metadata struct {
		Tenant string `json:"tenantId"`
		TTL    int    `json:"eventTTL"`
		By     string `json:"publishedBy"`
	} `json:"eventMetadata"`
	Payload string `json:"eventPayload"`
}

// eventSpace makes the ids of events. A repeat has the same id, so that readers recognise it.
var eventSpace = uuid.MustParse("6f0b4ad5-9f0c-4f7e-8f0e-3a1c1ad2f1b6")

// messagesOf returns what is sent for an event. It may be nothing.
func (n Names) messagesOf(id okapi.Tenant, e Event) ([]Message, error) {
	eventID := uuid.NewSHA1(eventSpace, fmt.Appendf(nil, "%s/%d/%d", id, e.ID, e.Date.UnixMicro()))
	if e.Topic == "" {
		return n.pubSubMessage(id, eventID, e.Type, string(e.Payload))
	}
	value := recordEvent{ID: eventID, Type: e.Type, Tenant: id.String(), Timestamp: e.Date.UnixMilli()}
	value.Change.Old, value.Change.New = e.Old, e.New
	text, err := json.Marshal(value)
	return []Message{{Topic: n.TopicOf(id, e.Topic), Key: e.RecordID.String(), Tenant: id, Value: text}}, err
}

// pubSubMessage has no key, as in FOLIO.
func (n Names) pubSubMessage(id okapi.Tenant, eventID uuid.UUID, kind, payload string) ([]Message, error) {
	if n.PubSub == "" {
		return nil, nil
	}
	value := pubSubEvent{ID: eventID, Type: kind, Payload: payload}
	value.Metadata.Tenant, value.Metadata.TTL, value.Metadata.By = id.String(), 1, "circulation-storage"
	text, err := json.Marshal(value)
	topic := strings.Join([]string{n.Environment, "pub-sub", id.String(), kind, n.PubSub}, ".")
	return []Message{{Topic: topic, Tenant: id, Value: text}}, err
}
