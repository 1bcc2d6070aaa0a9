package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// A library that moves in: its items, and the loans that are made before a check-out is measured.
const (
	movedIn      = 10_000
	itemsOfVisit = 10 // that one patron takes
)

// measureFresh measures check-outs on databases that PostgreSQL has not analyzed, after the tables
// have grown from nothing through the endpoints, beside databases that it has.
func measureFresh(ctx context.Context, b *bench) (err error) {
	b.report.note("%d items and as many loans are made through the endpoints of a new tenant. Autovacuum is off. "+
		"Then one client checks out, on a database as it is, and on one after an ANALYZE. CPU is that of both services and PostgreSQL.", movedIn)
	var desks []*freshDesk
	defer func() {
		for _, d := range desks {
			err = errors.Join(err, d.stop())
		}
	}()
	for _, build := range append([]build{b.plain()}, b.builds...) {
		for _, statistics := range []string{"none", "analyzed"} {
			d, err := startFreshDesk(ctx, b, build, statistics)
			if err != nil {
				return fmt.Errorf("%s: %w", build.name, err)
			}
			desks = append(desks, d)
		}
	}
	found, err := compareFreshDesks(ctx, b, desks)
	if err != nil {
		return err
	}
	rows := [][]string{{"what", "statistics", "CPU us, services / PostgreSQL", "p50", "CPU, of analyzed", "p50, of analyzed", "CPU, of plain", "p50, of plain"}}
	for i, d := range desks {
		all, analyzed, plain := found[d], found[desks[i|1]], found[desks[i&1]]
		rows = append(rows, []string{
			d.build.name, d.statistics, formatCPU(all), formatMillis(time.Duration(median(all, readDeskP50))),
			formatRatios(all, analyzed, readCPU), formatRatios(all, analyzed, readDeskP50),
			formatRatios(all, plain, readCPU), formatRatios(all, plain, readDeskP50),
		})
	}
	b.report.table(rows)
	return nil
}

// freshDesk is a desk whose items and loans were made through endpoints.
type freshDesk struct {
	*desk
	statistics string // "none" or "analyzed"
	next       int    // the item that is lent next
}

const (
	warmUp   = 200 // check-outs before the measured ones
	measured = 500 // check-outs of one repetition
)

// startFreshDesk starts a pair and makes items and loans.
func startFreshDesk(ctx context.Context, b *bench, build build, statistics string) (*freshDesk, error) {
	started, err := startDesk(ctx, b, build, noLimit, detours{})
	if err != nil {
		return nil, err
	}
	d := &freshDesk{desk: started, statistics: statistics}
	err = d.turn(ctx, true)
	if err == nil {
		err = d.forEachTable(ctx, "ALTER TABLE %s SET (autovacuum_enabled = off)")
	}
	if err == nil {
		err = d.moveIn(ctx, movedIn+warmUp+b.repetitions*measured)
	}
	if err == nil {
		clients := 8
		if build.isPlain() {
			clients = 1 // it refuses two check-outs of one patron at once
		}
		_, err = d.lendInOrder(ctx, movedIn, clients)
	}
	if err == nil && statistics == "analyzed" {
		err = d.forEachTable(ctx, "ANALYZE %s")
	}
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// compareFreshDesks measures all desks in turn, so that they meet the machine in the same state.
func compareFreshDesks(ctx context.Context, b *bench, desks []*freshDesk) (map[*freshDesk][]deskFigures, error) {
	all := map[*freshDesk][]deskFigures{}
	for _, d := range desks {
		if _, err := d.lendInOrder(ctx, warmUp, 1); err != nil {
			return nil, err
		}
	}
	for range b.repetitions {
		for _, d := range desks {
			f, err := d.lendInOrder(ctx, measured, 1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.build.name, err)
			}
			all[d] = append(all[d], f)
		}
	}
	return all, nil
}

// forEachTable runs a statement for each table of the tenant.
func (d *freshDesk) forEachTable(ctx context.Context, statement string) error {
	_, err := d.shelf.pool.Exec(ctx, fmt.Sprintf(`DO $$ DECLARE name regclass; BEGIN
		FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace IN ('%s'::regnamespace, 'public'::regnamespace)
		LOOP EXECUTE format('%s', name); END LOOP; END $$`, d.shelf.schema, statement))
	return err
}

// moveIn makes items, and a patron for each itemsOfVisit of them, through storage's endpoints.
func (d *freshDesk) moveIn(ctx context.Context, items int) error {
	d.shelf.Storage.HTTP = d.machine.HTTP
	return share(ctx, items, 8, func(ctx context.Context, item int) error {
		if item%itemsOfVisit == 0 {
			if _, err := d.shelf.AddPatron(ctx, "p"+strconv.Itoa(item/itemsOfVisit)); err != nil {
				return err
			}
		}
		_, err := d.shelf.AddBook(ctx, "i"+strconv.Itoa(item))
		return err
	})
}

// lendInOrder lends the next n items to the patrons of their visits.
func (d *freshDesk) lendInOrder(ctx context.Context, n, clients int) (deskFigures, error) {
	first := d.next
	d.next += n
	return d.measure(func() (figures, error) {
		latencies, began := make([]time.Duration, n), time.Now()
		err := share(ctx, n, clients, func(ctx context.Context, i int) error {
			start := time.Now()
			err := d.lend(ctx, first+i, (first+i)/itemsOfVisit)
			latencies[i] = time.Since(start)
			return err
		})
		return summarize(latencies, time.Since(began)), err
	})
}

// share lets clients do n operations together. The first error ends all of them.
func share(ctx context.Context, n, clients int, operate func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := operate(ctx, i); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}
