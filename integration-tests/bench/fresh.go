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
	for _, build := range b.builds {
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
	rows := [][]string{{"what", "statistics", "CPU us of a check-out, services / PostgreSQL", "p50", "CPU, of analyzed", "p50, of analyzed"}}
	for i, d := range desks {
		all, analyzed := found[d], found[desks[i|1]]
		rows = append(rows, []string{
			d.build.name, d.statistics,
			fmt.Sprintf("%d / %d", median(all, readServices).Microseconds(), median(all, readPostgreSQL).Microseconds()),
			formatMillis(median(all, readFreshP50)),
			formatRatio(float64(median(all, readSum)), float64(median(analyzed, readSum))),
			formatRatio(float64(median(all, readFreshP50)), float64(median(analyzed, readFreshP50))),
		})
	}
	b.report.table(rows)
	return nil
}

// freshDesk is a desk whose items and loans were made through endpoints.
type freshDesk struct {
	*desk
	bench      *bench
	statistics string // "none" or "analyzed"
	next       int    // the item that is lent next
}

const (
	warmUp   = 200 // check-outs before the measured ones
	measured = 500 // check-outs of one repetition
)

// startFreshDesk starts a pair and makes items and loans.
func startFreshDesk(ctx context.Context, b *bench, build build, statistics string) (*freshDesk, error) {
	started, err := startDesk(ctx, b, build, nil, nil)
	if err != nil {
		return nil, err
	}
	d := &freshDesk{desk: started, bench: b, statistics: statistics}
	err = d.turn(ctx, true)
	if err == nil {
		err = d.forEachTable(ctx, "ALTER TABLE %s SET (autovacuum_enabled = off)")
	}
	if err == nil {
		err = d.moveIn(ctx, movedIn+warmUp+b.repetitions*measured)
	}
	if err == nil {
		_, err = d.lendInOrder(ctx, movedIn, 8)
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
func compareFreshDesks(ctx context.Context, b *bench, desks []*freshDesk) (map[*freshDesk][]freshFigures, error) {
	all := map[*freshDesk][]freshFigures{}
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

// freshFigures are those of one repetition, with the processor time of one check-out.
type freshFigures struct {
	figures
	services, postgreSQL time.Duration
}

func readServices(f freshFigures) time.Duration   { return f.services }
func readPostgreSQL(f freshFigures) time.Duration { return f.postgreSQL }
func readSum(f freshFigures) time.Duration        { return f.services + f.postgreSQL }
func readFreshP50(f freshFigures) time.Duration   { return f.percentile(0.5) }

// forEachTable runs a statement for each table of the tenant.
func (d *freshDesk) forEachTable(ctx context.Context, statement string) error {
	_, err := d.shelf.pool.Exec(ctx, fmt.Sprintf(`DO $$ DECLARE name regclass; BEGIN
		FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = '%s'::regnamespace
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
func (d *freshDesk) lendInOrder(ctx context.Context, n, clients int) (freshFigures, error) {
	services, postgreSQL, err := d.processorTimes()
	if err != nil {
		return freshFigures{}, err
	}
	first := d.next
	d.next += n
	latencies, began := make([]time.Duration, n), time.Now()
	err = share(ctx, n, clients, func(ctx context.Context, i int) error {
		start := time.Now()
		err := d.lend(ctx, first+i, (first+i)/itemsOfVisit)
		latencies[i] = time.Since(start)
		return err
	})
	if err != nil {
		return freshFigures{}, err
	}
	f := freshFigures{figures: summarize(latencies, time.Since(began))}
	usedByServices, usedByPostgreSQL, err := d.processorTimes()
	f.services, f.postgreSQL = (usedByServices-services)/time.Duration(n), (usedByPostgreSQL-postgreSQL)/time.Duration(n)
	return f, err
}

// processorTimes returns what both services together, and PostgreSQL, have used so far.
func (d *freshDesk) processorTimes() (services, postgreSQL time.Duration, err error) {
	storage, err := d.storage.cpu()
	if err != nil {
		return 0, 0, err
	}
	circulation, err := d.circulation.cpu()
	if err != nil {
		return 0, 0, err
	}
	postgreSQL, err = d.bench.db.cpu()
	return storage + circulation, postgreSQL, err
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
