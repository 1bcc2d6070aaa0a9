package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	// defaultInterval is the pause between two turns without work.
	defaultInterval = time.Second
	// defaultLease is how long a tenant's events wait for a process that died.
	defaultLease = 6 * time.Second
	// callTimeout bounds a statement.
	callTimeout = 5 * time.Second
	// batch is how many rows are read at once. Two records of a loan have 4 kB.
	batch = 200
	// atOnce is for how many tenants a process delivers at once.
	atOnce = 4
)

// Deliverer delivers the events of all tenants.
type Deliverer struct {
	store   Store
	sink    Sink
	names   Names
	tenants func(context.Context) ([]okapi.Tenant, error)
	obs     Observer
	log     *slog.Logger

	interval time.Duration
	lease    time.Duration // how long one lasts
	holder   uuid.UUID
	states   map[okapi.Tenant]*state // of tenants, by turns
	broken   bool                    // the last turn failed
}

// state is what the process knows of a tenant's outbox. It judges by its own clock when to ask the
// store; only the store's clock judges the lease.
type state struct {
	lease Lease
	until time.Time     // the lease is surely in force; zero without a lease
	retry time.Time     // when to ask for the lease again
	lag   time.Duration // the age of the oldest row
}

// New returns a deliverer to a sink.
func New(
	store Store, sink Sink, names Names, tenants func(context.Context) ([]okapi.Tenant, error), obs Observer, log *slog.Logger,
) *Deliverer {
	return &Deliverer{
		store: store, sink: sink, names: names, tenants: tenants, obs: obs, log: log,
		interval: defaultInterval, lease: defaultLease, holder: uuid.New(), states: map[okapi.Tenant]*state{},
	}
}

// Run delivers until ctx is done. Then it gives its leases up.
func (d *Deliverer) Run(ctx context.Context) {
	tick := time.NewTicker(d.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.giveUp(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			d.noteTurn(ctx, d.takeTurn(ctx))
		}
	}
}

// takeTurn delivers what is there for each tenant, and returns the first error.
func (d *Deliverer) takeTurn(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ids, err := d.tenants(listing)
	if err != nil {
		d.obs.Failed(NotRead, 1)
		return err
	}
	for id := range d.states {
		if !slices.Contains(ids, id) {
			delete(d.states, id)
		}
	}
	if d.broken { // else each tenant would wait in vain
		if err := d.sink.Ping(listing); err != nil {
			d.obs.Failed(NotReceived, 1)
			return fmt.Errorf("reaching the reader of events: %w", err)
		}
	}
	var mu sync.Mutex
	var failed error
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, id := range ids {
		s := d.states[id]
		if s == nil {
			s = &state{}
			d.states[id] = s
		}
		g.Go(func() (err error) {
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				if err != nil && failed == nil {
					failed = err
				}
				err = nil
			}()
			defer fault.Recover(&err)
			return d.deliverTenant(okapi.WithTenant(ctx, id), id, s)
		})
	}
	_ = g.Wait()
	var lag time.Duration
	for _, s := range d.states {
		if !s.until.IsZero() {
			lag = max(lag, s.lag)
		}
	}
	d.obs.Lag(lag)
	return failed
}

// noteTurn logs the first turn that fails, and the first one that does not.
func (d *Deliverer) noteTurn(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !d.broken:
		d.log.WarnContext(ctx, "events are not delivered; they wait in the outbox", "err", err)
	case err == nil && d.broken:
		d.log.InfoContext(ctx, "events are delivered again")
	}
	d.broken = err != nil
}

// deliverTenant delivers batch after batch, for one lease at most, so that each tenant has its turn.
func (d *Deliverer) deliverTenant(ctx context.Context, id okapi.Tenant, s *state) error {
	leased, err := d.renew(ctx, s)
	if err != nil || !leased {
		return err
	}
	for {
		more, err := d.deliverBatch(ctx, id, s)
		if err != nil || !more {
			return err
		}
	}
}

// sendTime bounds the sending of a batch. What remains of the lease is for the deletion.
func (d *Deliverer) sendTime() time.Duration { return d.lease * 2 / 3 }

// renew makes sure that the lease lasts for a batch. It returns false while another process has it.
func (d *Deliverer) renew(ctx context.Context, s *state) (bool, error) {
	now := time.Now()
	if now.Add(d.sendTime()).Before(s.until) {
		return true, nil
	}
	if now.Before(s.retry) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	l, leased, err := d.store.Lease(ctx, d.holder, d.lease)
	switch {
	case fault.Is(err, fault.UnknownTenant), fault.Is(err, fault.TenantNotReady):
		return false, nil // readiness logs it
	case err != nil:
		d.obs.Failed(NotRead, 1)
		return false, err
	case !leased:
		*s = state{retry: now.Add(d.lease / 3)}
		return false, nil
	}
	s.lease, s.until = l, now.Add(d.lease)
	return true, nil
}

// deliverBatch sends the oldest rows, and deletes those that were received. It returns whether to go
// on at once.
func (d *Deliverer) deliverBatch(ctx context.Context, id okapi.Tenant, s *state) (more bool, err error) {
	reading, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, age, err := d.store.Next(reading, batch, d.names.PubSub != "")
	if err != nil {
		d.obs.Failed(NotRead, 1)
		return false, err
	}
	s.lag = age
	if len(rows) == 0 {
		return false, nil
	}
	sending, stop := context.WithDeadline(ctx, s.until.Add(d.sendTime()-d.lease))
	defer stop()
	sent := d.send(sending, id, rows)
	if sent.err != nil {
		d.obs.Failed(NotReceived, sent.failed)
	}
	if err := d.setAside(context.WithoutCancel(ctx), id, s, sent.refused); err != nil {
		d.obs.Failed(NotRead, len(sent.refused))
		return false, err
	}
	held, err := d.deleteRows(context.WithoutCancel(ctx), s, sent.received)
	switch {
	case err != nil:
		d.obs.Failed(NotRead, len(sent.received))
		return false, err
	case !held:
		d.obs.Failed(LeaseLost, len(sent.received))
		*s = state{}
		return false, nil
	}
	for kind, n := range sent.kinds {
		d.obs.Delivered(kind, n)
	}
	if len(sent.received) > 0 && errors.Is(sent.err, context.DeadlineExceeded) {
		return false, nil // the reader is slow, and the rest goes on in the next turn
	}
	return sent.err == nil && len(rows) == batch && sending.Err() == nil, sent.err
}

// setAside lets events that the sink refuses keep no others waiting. The log says which ones.
func (d *Deliverer) setAside(ctx context.Context, id okapi.Tenant, s *state, refused map[int64]error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for row, why := range refused {
		if err := d.store.SetAside(ctx, s.lease, row, why.Error()); err != nil {
			return err
		}
		d.obs.Failed(Refused, 1)
		d.log.ErrorContext(ctx, "event set aside, because the reader refuses it", "tenant", id, "event", row, "err", why)
	}
	return nil
}

func (d *Deliverer) deleteRows(ctx context.Context, s *state, ids []int64) (bool, error) {
	if len(ids) == 0 {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return d.store.Delete(ctx, s.lease, ids)
}

// OtherEvents is the kind of events that are not of a record.
const OtherEvents = "event"

// pending is a row whose messages are to be sent.
type pending struct {
	row      int64
	kind     string // for metrics
	group    string
	messages []Message
}

// sent is what became of rows.
type sent struct {
	received []int64
	kinds    map[string]int  // how many of each kind were received
	refused  map[int64]error // rows that ErrRefused is of
	failed   int             // how many rows err, or another error, kept back
	err      error           // the first one
}

// send sends rows in waves. A wave has the oldest row of each patron that is left, so a patron's next
// event is sent only after the last one was received or refused. After another error the rest of the
// patron waits for the next turn.
func (d *Deliverer) send(ctx context.Context, id okapi.Tenant, rows []Event) sent {
	s := sent{kinds: map[string]int{}, refused: map[int64]error{}}
	var waiting []pending
	for _, e := range rows {
		messages, err := d.names.messagesOf(id, e)
		if err != nil {
			s.failed, s.err = len(rows), err
			return s
		}
		waiting = append(waiting, pending{e.ID, cmp.Or(e.Topic, OtherEvents), groupOf(e), messages})
	}
	stuck := map[string]bool{}
	for len(waiting) > 0 && ctx.Err() == nil {
		var wave, later []pending
		taken := map[string]bool{}
		for _, p := range waiting {
			switch {
			case stuck[p.group]:
			case taken[p.group]:
				later = append(later, p)
			default:
				taken[p.group] = true
				wave = append(wave, p)
			}
		}
		for p, err := range d.sendWave(ctx, wave) {
			switch {
			case errors.Is(err, ErrRefused):
				s.refused[p.row] = err
			case err != nil:
				stuck[p.group] = true
				s.failed++
				if s.err == nil {
					s.err = err
				}
			default:
				s.received = append(s.received, p.row)
				if len(p.messages) > 0 {
					s.kinds[p.kind]++
				}
			}
		}
		waiting = later
	}
	return s
}

// sendWave sends the messages of rows at once, and yields the error of each row.
func (d *Deliverer) sendWave(ctx context.Context, wave []pending) func(yield func(pending, error) bool) {
	var all []Message
	for _, p := range wave {
		all = append(all, p.messages...)
	}
	errs := d.sink.Send(ctx, all)
	return func(yield func(pending, error) bool) {
		next := 0
		for _, p := range wave {
			var failed error
			for range p.messages {
				if failed == nil || errors.Is(failed, ErrRefused) && errs[next] != nil { // a repeat comes first
					failed = errs[next]
				}
				next++
			}
			if !yield(p, failed) {
				return
			}
		}
	}
}

// groupOf returns what an event keeps its order with: its patron's events, or its record's.
func groupOf(e Event) string {
	if e.PatronID != uuid.Nil {
		return e.PatronID.String()
	}
	var of struct{ UserID, ItemID string }
	_ = json.Unmarshal(e.Payload, &of) // of the events without a topic; others have none
	return cmp.Or(of.UserID, of.ItemID, e.RecordID.String())
}

func (d *Deliverer) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for id, s := range d.states {
		if s.until.IsZero() {
			continue
		}
		if err := d.store.GiveUp(okapi.WithTenant(ctx, id), d.holder); err != nil {
			d.log.DebugContext(ctx, "lease on events not given up", "tenant", id, "err", err)
			return
		}
	}
}
