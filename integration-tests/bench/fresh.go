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
// have grown from nothing through the endpoints. Then it does so after an ANALYZE.
func measureFresh(ctx context.Context, b *bench) (err error) {
	b.report.note("%d items and as many loans are made through the endpoints of a new tenant. Autovacuum is off. "+
		"Then one client checks out, before and after an ANALYZE. CPU is that of both services and PostgreSQL.", movedIn)
	desks := make([]*freshDesk, len(b.builds))
	defer func() {
		for _, d := range desks {
			if d != nil {
				err = errors.Join(err, d.stop())
			}
		}
	}()
	for i, build := range b.builds {
		if desks[i], err = startFreshDesk(ctx, b, build); err != nil {
			return fmt.Errorf("%s: %w", build.name, err)
		}
	}
	before, err := compareFreshDesks(ctx, b, desks)
	if err != nil {
		return err
	}
	for _, d := range desks {
		if err := d.forEachTable(ctx, "ANALYZE %s"); err != nil {
			return err
		}
	}
	after, err := compareFreshDesks(ctx, b, desks)
	if err != nil {
		return err
	}
	rows := [][]string{{"what", "statistics", "CPU us of a check-out, services / PostgreSQL", "p50", "CPU, of analyzed", "p50, of analyzed"}}
	for _, d := range desks {
		analyzed := after[d]
		for _, state := range []struct {
			name string
			all  []freshFigures
		}{{"none", before[d]}, {"analyzed", analyzed}} {
			rows = append(rows, []string{
				d.build.name, state.name,
				fmt.Sprintf("%d / %d", median(state.all, readServices).Microseconds(), median(state.all, readPostgreSQL).Microseconds()),
				formatMillis(median(state.all, readFreshP50)),
				formatRatio(float64(median(state.all, readSum)), float64(median(analyzed, readSum))),
				formatRatio(float64(median(state.all, readFreshP50)), float64(median(analyzed, readFreshP50))),
			})
		}
	}
	b.report.table(rows)
	return nil
}

// freshDesk is a desk whose items and loans were made through endpoints.
type freshDesk struct {
	*desk
	bench *bench
	next  int // the item that is lent next
}

const (
	warmUp   = 200 // check-outs before the measured ones
	measured = 500 // check-outs of one repetition
)

// startFreshDesk starts a pair and makes items and loans.
func startFreshDesk(ctx context.Context, b *bench, build build) (*freshDesk, error) {
	started, err := startDesk(ctx, b, build, nil, nil)
	if err != nil {
		return nil, err
	}
	d := &freshDesk{desk: started, bench: b}
	err = d.turn(ctx, true)
	if err == nil {
		err = d.forEachTable(ctx, "ALTER TABLE %s SET (autovacuum_enabled = off)")
	}
	if err == nil {
		err = d.moveIn(ctx, movedIn+2*(warmUp+b.repetitions*measured))
	}
	if err == nil {
		_, err = d.lendInOrder(ctx, movedIn, 8)
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
