package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/pace"
)

// desk lends the items of a shelf: by a pair of one build, or by the plain service.
type desk struct {
	bench                *bench
	build                build
	storage, circulation *process // the plain service is its own circulation and asks no storage
	shelf                *shelf
	machine              stack.Client
}

// noLimit is more than any patron of a benchmark borrows.
const noLimit = 9999

// detours, if set, return addresses that lead through a counter.
type detours struct {
	database, storage func(url string) (string, error)
}

// startDesk starts a desk whose patrons may have as many items as the limit says.
func startDesk(ctx context.Context, b *bench, build build, limit int, via detours) (_ *desk, err error) {
	d := &desk{bench: b, build: build}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	databaseURL, err := b.db.fork(ctx, "desk_"+build.name+"_"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		return nil, err
	}
	counted, err := lead(via.database, databaseURL)
	if err != nil {
		return nil, err
	}
	storageDatabase := counted
	if build.isPlain() {
		storageDatabase = databaseURL // the storage only makes the records
	}
	if d.storage, err = build.startStorage(ctx, storageDatabase, "MIGRATE_DATABASE_URL="+databaseURL); err != nil {
		return nil, err
	}
	if d.shelf, err = newShelf(ctx, d.storage.url, databaseURL, limit); err != nil {
		return nil, err
	}
	if build.isPlain() {
		d.circulation, err = startYardstick(ctx, "plain-check-outs", "DATABASE_URL="+counted, "TENANT_SCHEMA="+d.shelf.schema)
	} else {
		var storageURL string
		if storageURL, err = lead(via.storage, d.storage.url); err == nil {
			d.circulation, err = build.startCirculation(ctx, storageURL)
		}
	}
	if err != nil {
		return nil, err
	}
	d.machine = stack.Client{Base: d.circulation.url, Tenant: tenant, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	return d, nil
}

func lead(detour func(string) (string, error), url string) (string, error) {
	if detour == nil {
		return url, nil
	}
	return detour(url)
}

func (d *desk) stop() error {
	if d.shelf != nil {
		d.shelf.pool.Close()
	}
	return stopAll(d.circulation, d.storage)
}

// turn turns the lock on or off for the tenant and waits until circulation knows.
func (d *desk) turn(ctx context.Context, on bool) error { return turnAll(ctx, on, []*desk{d}) }

// turnAll turns the lock on or off at each desk and waits until all know. The plain service always
// locks.
func turnAll(ctx context.Context, on bool, desks []*desk) error {
	for _, d := range desks {
		if d.build.isPlain() {
			continue
		}
		body := map[string]any{"enabled": on, "reason": "benchmark"}
		if _, err := d.machine.Must(ctx, http.MethodPut, "/circulation/check-out-lock-settings", body); err != nil {
			return err
		}
	}
	pace.Wait(ctx, 2500*time.Millisecond) // settings are in force within two seconds
	return ctx.Err()
}

// lend lends the item and the patron of that number.
func (d *desk) lend(ctx context.Context, item, patron int) error {
	return d.lendTo(ctx, "i"+strconv.Itoa(item), "p"+strconv.Itoa(patron))
}

func (d *desk) lendTo(ctx context.Context, itemBarcode, userBarcode string) error {
	_, err := d.machine.Must(ctx, http.MethodPost, "/circulation/check-out-by-barcode", stack.CheckOut{
		ItemBarcode: itemBarcode, UserBarcode: userBarcode, ServicePointID: d.shelf.ServicePointID,
	})
	return err
}

// deskFigures are those of one repetition, with the processor time of one operation.
type deskFigures struct {
	figures
	services, postgreSQL time.Duration
}

func readServices(f deskFigures) time.Duration   { return f.services }
func readPostgreSQL(f deskFigures) time.Duration { return f.postgreSQL }
func readCPU(f deskFigures) float64              { return float64(f.services + f.postgreSQL) }
func readDeskRate(f deskFigures) float64         { return f.perSecond }
func readDeskP50(f deskFigures) float64          { return float64(f.percentile(0.5)) }
func readDeskP99(f deskFigures) float64          { return float64(f.percentile(0.99)) }

// drive lends new items to patrons of each client's own for a slice of time. A patron
// gets ten items, so that the number of their loans stays that of a visit.
func (d *desk) drive(ctx context.Context, clients int) (deskFigures, error) {
	const enough = 6000 // a second, for two processors
	first, err := d.shelf.addCopies(ctx, int(enough*d.bench.slice.Seconds())+clients*10)
	if err != nil {
		return deskFigures{}, err
	}
	var next atomic.Int64
	return d.measure(func() (figures, error) {
		return drive(ctx, clients, d.bench.slice, func(ctx context.Context, client, n int) error {
			item := int(next.Add(1)) - 1
			return d.lend(ctx, first+item, first+client+n/10*clients)
		})
	})
}

// measure adds the processor time that operate needs.
func (d *desk) measure(operate func() (figures, error)) (deskFigures, error) {
	services, postgreSQL, err := d.processorTimes()
	if err != nil {
		return deskFigures{}, err
	}
	f, err := operate()
	if err != nil {
		return deskFigures{}, err
	}
	usedByServices, usedByPostgreSQL, err := d.processorTimes()
	n := time.Duration(len(f.latencies))
	return deskFigures{f, (usedByServices - services) / n, (usedByPostgreSQL - postgreSQL) / n}, err
}

// processorTimes returns what the services together, and PostgreSQL, have used so far.
func (d *desk) processorTimes() (services, postgreSQL time.Duration, err error) {
	for _, p := range []*process{d.circulation, d.storage} {
		if p == d.storage && d.build.isPlain() {
			break
		}
		used, err := p.cpu()
		if err != nil {
			return 0, 0, err
		}
		services += used
	}
	postgreSQL, err = d.bench.db.cpu()
	return services, postgreSQL, err
}
