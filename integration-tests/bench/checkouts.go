package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"checkoutlock/integration-tests/stack"
)

// desk is a running pair of one build with a shelf.
type desk struct {
	build                build
	storage, circulation *process
	shelf                *shelf
	machine              stack.Client
}

// startDesk starts a pair. databaseVia and storageVia, if set, return addresses that lead
// through a counter.
func startDesk(ctx context.Context, b *bench, build build, databaseVia, storageVia func(string) (string, error)) (_ *desk, err error) {
	d := &desk{build: build}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	databaseURL, err := b.db.fork(ctx, "desk_"+build.name+"_"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		return nil, err
	}
	via := databaseURL
	if databaseVia != nil {
		if via, err = databaseVia(databaseURL); err != nil {
			return nil, err
		}
	}
	if d.storage, err = build.startStorage(ctx, via, "MIGRATE_DATABASE_URL="+databaseURL); err != nil {
		return nil, err
	}
	storageURL := d.storage.url
	if storageVia != nil {
		if storageURL, err = storageVia(storageURL); err != nil {
			return nil, err
		}
	}
	if d.circulation, err = build.startCirculation(ctx, storageURL); err != nil {
		return nil, err
	}
	if d.shelf, err = newShelf(ctx, d.storage.url, databaseURL); err != nil {
		return nil, err
	}
	d.machine = stack.Client{Base: d.circulation.url, Tenant: tenant, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	return d, nil
}

func (d *desk) stop() error {
	if d.shelf != nil {
		d.shelf.pool.Close()
	}
	return stopAll(d.circulation, d.storage)
}

// turn turns the lock on or off for the tenant and waits until circulation knows.
func (d *desk) turn(ctx context.Context, on bool) error {
	if _, err := d.machine.Must(ctx, http.MethodPut, "/circulation/check-out-lock-settings", map[string]any{"enabled": on, "reason": "benchmark"}); err != nil {
		return err
	}
	select {
	case <-time.After(2500 * time.Millisecond): // settings are in force within two seconds
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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

// drive lends new items to patrons of each client's own for a slice of time. A patron
// gets ten items, so that the number of their loans stays that of a visit.
func (d *desk) drive(ctx context.Context, b *bench, clients int) (figures, error) {
	const enough = 1500 // a second, for two processors
	first, err := d.shelf.addCopies(ctx, int(enough*b.slice.Seconds())+clients*10)
	if err != nil {
		return figures{}, err
	}
	var next atomic.Int64
	return drive(ctx, clients, b.slice, func(ctx context.Context, client, n int) error {
		item := int(next.Add(1)) - 1
		return d.lend(ctx, first+item, first+client+n/10*clients)
	})
}

func measureCheckOuts(ctx context.Context, b *bench) error {
	if err := countCheckOuts(ctx, b); err != nil {
		return err
	}
	desks := make([]*desk, len(b.builds))
	var err error
	for i, build := range b.builds {
		if desks[i], err = startDesk(ctx, b, build, nil, nil); err != nil {
			return err
		}
	}
	rows := [][]string{{"clients", "lock", "what", "check-outs/s", "of base", "p50", "p99"}}
	all, err := compareDesks(ctx, b, desks)
	if err != nil {
		return err
	}
	for _, on := range switches {
		for _, clients := range crowds {
			of := func(d *desk) []figures { return all[visit{d, on, clients}] }
			base := median(of(desks[len(desks)-1]), readRate)
			for _, d := range desks {
				rate := median(of(d), readRate)
				rows = append(rows, []string{
					strconv.Itoa(clients), formatSwitch(on), d.build.name, fmt.Sprintf("%.0f", rate), formatRatio(rate, base),
					formatMillis(median(of(d), readP50)), formatMillis(median(of(d), readP99)),
				})
			}
		}
	}
	b.report.table(rows)
	for _, d := range desks {
		off, on := median(all[visit{d, false, 1}], readP50), median(all[visit{d, true, 1}], readP50)
		b.report.note("The lock's share of a check-out (%s, p50 at 1 client): %.0f %%.", d.build.name, 100*(1-float64(off)/float64(on)))
	}
	var errs []error
	for _, d := range desks {
		errs = append(errs, d.stop())
	}
	return errors.Join(errs...)
}

var (
	switches = []bool{false, true}
	crowds   = []int{1, 8, 32}
)

// visit is a part of the comparison: a number of clients at a desk, with the lock off or on.
type visit struct {
	desk    *desk
	on      bool
	clients int
}

// compareDesks repeats all visits in turn, so that they meet the machine in the same state.
func compareDesks(ctx context.Context, b *bench, desks []*desk) (map[visit][]figures, error) {
	all := map[visit][]figures{}
	for range b.repetitions {
		for _, on := range switches {
			for _, d := range desks {
				if err := d.turn(ctx, on); err != nil {
					return nil, err
				}
			}
			for _, clients := range crowds {
				for _, d := range desks {
					f, err := d.drive(ctx, b, clients)
					if err != nil {
						return nil, fmt.Errorf("%s: %w", d.build.name, err)
					}
					v := visit{d, on, clients}
					all[v] = append(all[v], f)
				}
			}
		}
	}
	return all, nil
}

func formatSwitch(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// countCheckOuts counts what 100 check-outs, one after the other, cost each build.
func countCheckOuts(ctx context.Context, b *bench) error {
	rows := [][]string{{"one check-out", "lock", "calls to storage", "statements", "round trips", "durable commits"}}
	for _, build := range b.builds {
		more, err := countBuild(ctx, b, build)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	b.report.table(rows)
	return nil
}

func countBuild(ctx context.Context, b *bench, build build) (rows [][]string, err error) {
	var wire *wireCounter
	var calls *callCounter
	d, err := startDesk(ctx, b, build,
		func(databaseURL string) (via string, err error) {
			wire, via, err = newWireCounter(databaseURL)
			return via, err
		},
		func(storageURL string) (string, error) {
			calls, err = newCallCounter(storageURL)
			if err != nil {
				return "", err
			}
			return calls.url(), nil
		})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop(), calls.close(), wire.close()) }()
	for _, on := range []bool{false, true} {
		if err := d.turn(ctx, on); err != nil {
			return nil, err
		}
		const warm, n = 20, 100
		first, err := d.shelf.addCopies(ctx, warm+n)
		if err != nil {
			return nil, err
		}
		for i := range warm { // caches fill and statements are prepared
			if err := d.lend(ctx, first+i, first+i); err != nil {
				return nil, err
			}
		}
		sentCalls, statements, trips, commits := calls.calls.Load(), wire.statements.Load(), wire.roundTrips.Load(), wire.commits.Load()
		for i := range n {
			if err := d.lend(ctx, first+warm+i, first+warm+i); err != nil {
				return nil, err
			}
		}
		sentCalls, statements = calls.calls.Load()-sentCalls, wire.statements.Load()-statements
		trips, commits = wire.roundTrips.Load()-trips, wire.commits.Load()-commits
		per := func(total int64) string { return strconv.FormatFloat(float64(total)/n, 'f', 1, 64) }
		rows = append(rows, []string{build.name, formatSwitch(on), per(sentCalls), per(statements), per(trips), per(commits)})
	}
	return rows, nil
}
