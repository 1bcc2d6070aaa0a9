package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/pace"
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
	sendTime time.Duration // bounds the sending of a batch; what remains of the lease is for the deletion
	holder   uuid.UUID
	states   map[okapi.Tenant]*state // of tenants, by turns
	broken   bool                    // the last turn failed
	away     bool                    // the log says that the reader is not reached
	reached  bool                    // the reader was reached since the last line
}

// errAway is of a reader that is not reached.
var errAway = errors.New("reaching the reader of events")

// state is what the process knows of a tenant's outbox. It judges by its own clock when to ask the
// store; only the store's clock judges the lease.
type state struct {
	lease  Lease
	until  time.Time // the lease is surely in force; zero without a lease
	retry  time.Time // when to ask for the lease again
	oldest time.Time // when the oldest row was written; zero if none waits
	turn   *turn     // the last one, if it ended with a batch that failed whole or mostly; the next one goes on behind that
}

// turn is how far the turn of a tenant has come. It reads on past the rows that it could not deliver. They
// wait until it has read all rows, and so does the rest of their groups.
//
// It reads nothing that is newer than its first batch. A row that commits late may have an id that the turn
// has passed. Its patron's next event was written after that, so both wait until the turn has read all rows.
type turn struct {
	after    int64           // the last row that was read
	last     int64           // the last row to read
	stuck    map[string]bool // the groups that wait
	ended    bool            // it has read all rows, and sent those of its last batch
	received int             // how many rows, since it went on
	err      error           // the first one of the sink, since it went on
}

// New returns a deliverer to a sink.
func New(
	store Store, sink Sink, names Names, tenants func(context.Context) ([]okapi.Tenant, error), obs Observer, log *slog.Logger,
) *Deliverer {
	return &Deliverer{
		store: store, sink: sink, names: names, tenants: tenants, obs: obs, log: log,
		interval: defaultInterval, lease: defaultLease, sendTime: defaultLease * 2 / 3, holder: uuid.New(),
		states: map[okapi.Tenant]*state{},
	}
}

// Run delivers until ctx is done. Then it gives its leases up.
func (d *Deliverer) Run(ctx context.Context) {
	for range pace.Every(ctx, d.interval, d.interval) {
		d.noteTurn(ctx, d.takeTurn(ctx))
	}
	d.giveUp(context.WithoutCancel(ctx))
}

// takeTurn delivers what is there for each tenant, and returns the first error.
func (d *Deliverer) takeTurn(ctx context.Context) error {
	defer d.reportLag() // also while nothing can be read or sent
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
			return fmt.Errorf("%w: %w", errAway, err)
		}
		d.reached = true
	}
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, id := range ids {
		s := cmp.Or(d.states[id], &state{})
		d.states[id] = s
		g.Go(func() (err error) {
			defer fault.Recover(&err)
			err = d.deliverTenant(okapi.WithTenant(ctx, id), id, s)
			if fault.Is(err, fault.UnknownTenant) { // it was moved or purged in its turn
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

// reportLag reports the age of the oldest row that waits, as far as the process knows.
func (d *Deliverer) reportLag() {
	var lag time.Duration
	for _, s := range d.states {
		if !s.oldest.IsZero() {
			lag = max(lag, time.Since(s.oldest))
		}
	}
	d.obs.Lag(lag)
}

// noteTurn logs the first turn that fails, and the first one that does not. Events may fail for days beside
// those that are delivered. So it logs the begin and the end of an outage among such turns too.
func (d *Deliverer) noteTurn(ctx context.Context, err error) {
	away := errors.Is(err, errAway)
	switch {
	case ctx.Err() != nil:
	case err != nil && (!d.broken || d.reached && away != d.away):
		d.log.WarnContext(ctx, "events are not delivered; they wait in the outbox", "err", err)
		d.away, d.reached = away, false
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
	t := cmp.Or(s.turn, &turn{last: math.MaxInt64, stuck: map[string]bool{}})
	s.turn, t.received, t.err = nil, 0, nil
	for more := true; more; {
		if more, err = d.deliverBatch(ctx, id, s, t); err != nil {
			return err
		}
	}
	if t.ended && len(t.stuck) == 0 {
		s.oldest = time.Time{}
	}
	if t.received > 0 && errors.Is(t.err, context.DeadlineExceeded) {
		return nil // the reader is slow, and the rest goes on in the next turn
	}
	return t.err
}

// renew makes sure that half of the time to send a batch is left. It returns false while another process has it.
func (d *Deliverer) renew(ctx context.Context, s *state) (bool, error) {
	now := time.Now()
	if now.Before(s.until.Add(d.sendTime/2 - d.lease)) {
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

// deliverBatch sends the next rows of a turn, and deletes those that were received. It returns whether to
// go on at once.
func (d *Deliverer) deliverBatch(ctx context.Context, id okapi.Tenant, s *state, t *turn) (more bool, err error) {
	reading, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	read, err := d.store.Next(reading, t.after, t.last, batch, d.names.PubSub != "")
	if err != nil {
		d.obs.Failed(NotRead, 1)
		return false, err
	}
	if t.after == 0 {
		s.oldest, t.last = time.Now().Add(-read.Age), read.Newest
	}
	if t.ended = len(read.Events) == 0; t.ended {
		return false, nil
	}
	sending, stop := context.WithDeadline(ctx, s.until.Add(d.sendTime-d.lease))
	defer stop()
	sent := d.send(sending, id, read.Events, t.stuck)
	if sent.err != nil {
		d.obs.Failed(NotReceived, sent.failed)
	}
	held, err := d.finishRows(context.WithoutCancel(ctx), s, sent)
	if err != nil || !held {
		return false, err
	}
	t.after = read.Events[len(read.Events)-1].ID
	t.ended = len(read.Events) < batch && len(sent.received)+len(sent.refused) == len(read.Events)
	t.received += len(sent.received)
	t.err = cmp.Or(t.err, sent.err)
	switch {
	case len(read.Events) < batch:
		return false, nil
	case sending.Err() == nil:
		return true, nil
	case sent.failed > 0 && len(sent.received)+len(sent.refused) == 0, 2*sent.behind > len(read.Events):
		s.turn = t // all or most rows of the batch wait, and would take the time of the next turn too
	}
	return false, nil
}

// finishRows sets rows aside that the sink refuses, and deletes those that it received. It returns false
// if the lease was lost.
func (d *Deliverer) finishRows(ctx context.Context, s *state, result sent) (held bool, err error) {
	held, err = d.setAside(ctx, s, result.refused)
	if err != nil {
		d.obs.Failed(NotRead, len(result.refused))
		return false, err
	}
	if held {
		if held, err = d.deleteRows(ctx, s, result.received); err != nil {
			d.obs.Failed(NotRead, len(result.received))
			return false, err
		}
	}
	if !held {
		d.obs.Failed(LeaseLost, len(result.received)+len(result.refused))
		*s = state{}
		return false, nil
	}
	for kind, n := range result.kinds {
		d.obs.Delivered(kind, n)
	}
	return true, nil
}

// setAside lets events that the sink refuses keep no others waiting. The log says which ones. It returns
// false if the lease was lost.
func (d *Deliverer) setAside(ctx context.Context, s *state, refused map[int64]error) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for row, why := range refused {
		held, err := d.store.SetAside(ctx, s.lease, row, why.Error())
		if err != nil || !held {
			return false, err
		}
		d.obs.Failed(Refused, 1)
		d.log.ErrorContext(ctx, "event set aside, because the reader refuses it", "event", row, "err", why)
	}
	return true, nil
}

func (d *Deliverer) deleteRows(ctx context.Context, s *state, ids []int64) (bool, error) {
	if len(ids) == 0 {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return d.store.Delete(ctx, s.lease, ids)
}

func (d *Deliverer) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for id, s := range d.states {
		if s.until.IsZero() {
			continue
		}
		ctx := okapi.WithTenant(ctx, id)
		err := d.store.GiveUp(ctx, d.holder)
		if err != nil {
			d.log.DebugContext(ctx, "lease on events not given up", "err", err)
		}
		if fault.Is(err, fault.Unavailable) { // it is that of all tenants
			return
		}
	}
}
