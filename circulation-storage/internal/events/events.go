// Package events delivers what commits wrote into the outbox: at least once, and in order for each
// patron.
//
// One process delivers for a tenant at a time, by a lease whose fence counts the changes of hands.
// A row is deleted when its event was delivered, and each turn begins with the oldest row that is left, or
// goes on behind a batch that failed whole or mostly. So a transaction that commits late is not passed over:
// its rows are read when they can be seen.
package events

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/okapi"
)

// Event is a row of the outbox.
type Event struct {
	ID   int64
	Date time.Time
	Type string // of the event; CREATED, UPDATED or DELETED of a record
	// Topic is that of a record's event; "" for the other events.
	Topic    string
	RecordID uuid.UUID
	PatronID uuid.UUID       // Nil for no patron
	Old, New json.RawMessage // the record; nil if it was not there
	Payload  json.RawMessage // of the other events
	Names    map[string]any  // of the records that Payload names, for the circulation log
}

// Message is an event as it is sent.
type Message struct {
	Topic  string
	Key    string // messages of one key keep their order; "" is none
	Tenant okapi.Tenant
	Value  []byte // JSON
}

// Sink is where messages go.
type Sink interface {
	// Send sends messages, in any order, until ctx is done. It returns the error of each, nil for those
	// that were certainly received, and ErrRefused for those that never will be.
	Send(ctx context.Context, messages []Message) []error
	// Ping returns why nothing can be sent.
	Ping(ctx context.Context) error
}

// Lease is a process's right to deliver the events of a tenant.
type Lease struct {
	Holder uuid.UUID // the process
	Fence  int64
}

// Batch is what was read of an outbox at one moment.
type Batch struct {
	Events []Event
	Newest int64         // the highest id of all rows; 0 without events
	Age    time.Duration // of the oldest of the events
}

// Store keeps the outbox of the tenant in ctx.
type Store interface {
	// Lease leases the outbox to the holder, or renews its lease. It returns false while another process
	// has it.
	Lease(ctx context.Context, holder uuid.UUID, duration time.Duration) (Lease, bool, error)
	// Next returns the oldest of the rows whose ids are above after and up to last, in their order. It
	// reads Names only if they are wanted.
	Next(ctx context.Context, after, last int64, limit int, named bool) (Batch, error)
	// Delete deletes delivered rows. It deletes none and returns false if the lease is not in force.
	Delete(ctx context.Context, l Lease, ids []int64) (bool, error)
	// SetAside lets a row wait no longer for delivery, for the reason why. It stays until it is swept. It
	// changes nothing and returns false if the lease is not in force.
	SetAside(ctx context.Context, l Lease, id int64, why string) (bool, error)
	// GiveUp ends the holder's lease, so that another process need not wait for its end.
	GiveUp(ctx context.Context, holder uuid.UUID) error
}

// ErrRefused is of a message that the sink refuses for itself, so that no repeat can succeed.
var ErrRefused = errors.New("the reader refuses the event")

// Failure is why an event was not delivered in a turn.
type Failure string

// The failures.
const (
	NotReceived Failure = "not_received" // the sink did not take it now, or did not answer
	NotRead     Failure = "not_read"     // the database was away
	LeaseLost   Failure = "lease_lost"   // another process took over
	Refused     Failure = "refused"      // the sink takes it never, and it was set aside
)

// Failures returns all failures.
func Failures() []Failure { return []Failure{NotReceived, NotRead, LeaseLost, Refused} }

// Observer receives what happens, for metrics.
type Observer interface {
	// Delivered receives the number of events of a kind: a record's topic, or "event".
	Delivered(kind string, n int)
	// Failed receives the number of events, 1 if it is not known.
	Failed(why Failure, n int)
	// Lag receives, after each turn, the age of the oldest event of all tenants that the process
	// delivers for; 0 if there is none.
	Lag(age time.Duration)
}
