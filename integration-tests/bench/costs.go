package main

import (
	"context"
	"errors"
	"strconv"
)

// costs are what a number of check-outs needed.
type costs struct {
	calls, statements, roundTrips, commits, wal int64
}

// counters count what a desk sends.
type counters struct {
	wire  *wireCounter
	calls *callCounter // nil for the plain service, which calls nothing
}

// countCheckOuts counts what 100 check-outs, one after the other, cost each build.
func countCheckOuts(ctx context.Context, b *bench) error {
	rows := [][]string{{"one check-out", "lock", "calls to storage", "statements", "round trips", "durable commits", "WAL, bytes"}}
	for _, build := range append([]build{b.plain()}, b.builds...) {
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
	var c counters
	d, err := startDesk(ctx, b, build, noLimit, detours{
		database: func(databaseURL string) (via string, err error) {
			c.wire, via, err = newWireCounter(databaseURL)
			return via, err
		},
		storage: func(storageURL string) (string, error) {
			c.calls, err = newCallCounter(storageURL)
			if err != nil {
				return "", err
			}
			return c.calls.url(), nil
		},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop(), c.close()) }()
	for _, on := range switches {
		if on && build.isPlain() {
			break // it has no switch
		}
		if err := d.turn(ctx, on); err != nil {
			return nil, err
		}
		const warm, n = 20, 100
		first, err := d.shelf.addCopies(ctx, warm+n)
		if err != nil {
			return nil, err
		}
		if err := d.lendEach(ctx, first, warm); err != nil { // caches fill and statements are prepared
			return nil, err
		}
		before, err := c.read(ctx, b)
		if err != nil {
			return nil, err
		}
		if err := d.lendEach(ctx, first+warm, n); err != nil {
			return nil, err
		}
		after, err := c.read(ctx, b)
		if err != nil {
			return nil, err
		}
		per := func(before, after int64) string { return strconv.FormatFloat(float64(after-before)/n, 'f', 1, 64) }
		rows = append(rows, []string{
			build.name, formatSwitch(on || build.isPlain()),
			per(before.calls, after.calls), per(before.statements, after.statements), per(before.roundTrips, after.roundTrips),
			per(before.commits, after.commits), strconv.FormatInt((after.wal-before.wal)/n, 10),
		})
	}
	return rows, nil
}

// lendEach lends n items, each to a patron of its own.
func (d *desk) lendEach(ctx context.Context, first, n int) error {
	for i := range n {
		if err := d.lend(ctx, first+i, first+i); err != nil {
			return err
		}
	}
	return nil
}

func (c counters) read(ctx context.Context, b *bench) (costs, error) {
	sum := costs{statements: c.wire.statements.Load(), roundTrips: c.wire.roundTrips.Load(), commits: c.wire.commits.Load()}
	if c.calls != nil {
		sum.calls = c.calls.calls.Load()
	}
	err := b.db.pool.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").Scan(&sum.wal)
	return sum, err
}

func (c counters) close() error {
	if c.calls == nil {
		return c.wire.close()
	}
	return errors.Join(c.calls.close(), c.wire.close())
}
