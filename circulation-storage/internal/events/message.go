package events

import (
	"encoding/json"
	"errors"
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
		return n.pubSubMessages(id, eventID, e)
	}
	value := recordEvent{ID: eventID, Type: e.Type, Tenant: id.String(), Timestamp: e.Date.UnixMilli()}
	var err error
	if value.Change.Old, value.Change.New, err = stripPatron(e); err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	topic := strings.Join([]string{n.Environment, id.String(), "circulation", e.Topic}, ".")
	return []Message{{Topic: topic, Key: e.RecordID.String(), Tenant: id, Value: text}}, err
}

// stripPatron returns an event's records. That of a loan that lost its patron does not name the patron.
func stripPatron(e Event) (before, after json.RawMessage, err error) {
	if e.Topic != "loan" || e.Old == nil || e.New == nil {
		return e.Old, e.New, nil
	}
	var old, now map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(e.Old, &old), json.Unmarshal(e.New, &now)); err != nil {
		return nil, nil, err
	}
	if now["userId"] != nil {
		return e.Old, e.New, nil
	}
	delete(old, "userId")
	delete(old, "proxyUserId")
	before, err = json.Marshal(old)
	return before, e.New, err
}

// pubSubMessages have no key, as in FOLIO.
func (n Names) pubSubMessages(id okapi.Tenant, eventID uuid.UUID, e Event) (messages []Message, err error) {
	if n.PubSub == "" || strings.HasPrefix(e.Type, "REQUEST_") { // an earlier build wrote that beside the record's event
		return nil, nil
	}
	var payload document
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return nil, err
	}
	add := func(kind string, payload []byte) {
		value := pubSubEvent{ID: uuid.NewSHA1(eventID, fmt.Append(nil, len(messages))), Type: kind, Payload: string(payload)}
		value.Metadata.Tenant, value.Metadata.TTL, value.Metadata.By = id.String(), 1, "circulation-storage"
		text, textErr := json.Marshal(value)
		err = errors.Join(err, textErr)
		topic := strings.Join([]string{n.Environment, "pub-sub", id.String(), kind, n.PubSub}, ".")
		messages = append(messages, Message{Topic: topic, Tenant: id, Value: text})
	}
	if period := e.Names["gracePeriod"]; period != nil { // before its end mod-patron-blocks counts no loan as overdue
		payload["gracePeriod"] = period
		e.Payload, err = json.Marshal(payload)
	}
	// As in FOLIO, a check-in is an event only if it closed a loan.
	if e.Type != logRecord && (e.Type != itemCheckedIn || payload["loanId"] != nil) {
		add(e.Type, e.Payload)
	}
	for _, record := range logRecords(e, payload) {
		text, textErr := json.Marshal(record)
		err = errors.Join(err, textErr)
		add(logRecord, text)
	}
	return messages, err
}
