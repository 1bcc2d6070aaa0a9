package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/pace"
)

const (
	workers   = 16
	turns     = 50
	holdFor   = 5 * time.Millisecond
	idealTime = workers * turns * holdFor
)

// twoStorages is a build's two storages on one database.
type twoStorages struct {
	build  build
	first  *process
	second *process
}

func startTwoStorages(ctx context.Context, b *bench, build build) (*twoStorages, error) {
	first, databaseURL, err := startStorageWithTenant(ctx, b, build)
	if err != nil {
		return nil, err
	}
	second, err := build.startStorage(ctx, databaseURL)
	if err != nil {
		return nil, errors.Join(err, first.stop())
	}
	return &twoStorages{build: build, first: first, second: second}, nil
}

func (p *twoStorages) stop() error { return stopAll(p.first, p.second) }

// clients returns n clients, of the first storage alone or of both in turn.
func (p *twoStorages) clients(n int, both bool) []*lockClient {
	clients := make([]*lockClient, n)
	for i := range clients {
		clients[i] = newLockClient(p.first.url, 1)
		if both && i%2 == 1 {
			clients[i] = newLockClient(p.second.url, 1)
		}
	}
	return clients
}

// startTwoOfEach starts two storages of each build.
func startTwoOfEach(ctx context.Context, b *bench) ([]*twoStorages, error) {
	return startEach(b.builds, func(build build) (*twoStorages, error) { return startTwoStorages(ctx, b, build) })
}

// measureContended lets 16 workers take one patron's lock 50 times for 5 ms each.
func measureContended(ctx context.Context, b *bench) (err error) {
	b.report.note("%d workers take one patron's lock %d times each and hold it for %s: %s at best.", workers, turns, holdFor, idealTime)
	all, err := startTwoOfEach(ctx, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAll(all...)) }()
	rows := [][]string{{"what", "build", "total", "of base", "of the ideal", "wait p50", "wait p99", "p99 of p50"}}
	for _, way := range []struct {
		name string
		both bool
		wait acquireFunc
	}{
		{name: "one storage", wait: waitInStorage},
		{name: "half through each of two storages", both: true, wait: waitInStorage},
		{name: "a try every 250 ms, as FOLIO", wait: tryEvery250ms},
	} {
		clients, seen := make([][]*lockClient, len(all)), make([][]figures, len(all))
		for i, two := range all {
			clients[i] = two.clients(workers, way.both)
		}
		for n := range b.repetitions {
			for i := range all {
				at := (i + n) % len(all) // another one is the first each time
				f, err := contend(ctx, clients[at], way.wait)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", all[at].build.name, way.name, err)
				}
				seen[at] = append(seen[at], f)
			}
		}
		for i, two := range all {
			rows = append(rows, append([]string{way.name, two.build.name}, formatContended(seen[i], seen[len(all)-1])...))
		}
	}
	b.report.table(rows)
	return nil
}

func formatContended(all, base []figures) []string {
	total, p50, p99 := median(all, readTotal), median(all, readP50), median(all, readP99)
	return []string{
		strconv.FormatFloat(total, 'f', 2, 64) + " s", formatRatios(all, base, readTotal), formatRatio(total, idealTime.Seconds()),
		formatMillis(p50), formatMillis(p99), formatRatio(float64(p99), float64(p50)),
	}
}

// readTotal returns how long all turns took, in seconds.
func readTotal(f figures) float64 { return float64(len(f.latencies)) / f.perSecond }

// acquireFunc returns the id of a lock that it waited for.
type acquireFunc func(ctx context.Context, c *lockClient, user string) (string, error)

func waitInStorage(ctx context.Context, c *lockClient, user string) (string, error) {
	for {
		if id, err := c.acquire(ctx, user, 60_000, 10_000); err != nil || id != "" {
			return id, err
		}
	}
}

func tryEvery250ms(ctx context.Context, c *lockClient, user string) (string, error) {
	for {
		if id, err := c.acquire(ctx, user, 60_000, 0); err != nil || id != "" {
			return id, err
		}
		if !pace.Wait(ctx, 250*time.Millisecond) {
			return "", ctx.Err()
		}
	}
}

func contend(ctx context.Context, clients []*lockClient, acquire acquireFunc) (figures, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	user := uuid.NewString()
	waits := make([]time.Duration, len(clients)*turns)
	var wg sync.WaitGroup
	began := time.Now()
	for i, c := range clients {
		wg.Go(func() {
			for turn := range turns {
				start := time.Now()
				id, err := acquire(ctx, c, user)
				waits[i*turns+turn] = time.Since(start)
				if err == nil {
					<-time.After(holdFor)
					err = c.release(ctx, id)
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return summarize(waits, time.Since(began)), context.Cause(ctx)
}

// measureHandOver measures how long a waiter in the second storage waits on after the
// lock was released in the first.
func measureHandOver(ctx context.Context, b *bench) (err error) {
	all, err := startTwoOfEach(ctx, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAll(all...)) }()
	rows := [][]string{{"held for", "build", "hand-over p50", "of base", "p99"}}
	for _, held := range []time.Duration{4 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		latencies := make([][]time.Duration, len(all))
		for n := range b.repetitions * 20 {
			for i := range all {
				at := (i + n) % len(all) // another one is the first each time
				took, err := handOver(ctx, all[at], held)
				if err != nil {
					return err
				}
				latencies[at] = append(latencies[at], took)
			}
		}
		for i, two := range all {
			row := append([]string{held.String(), two.build.name}, formatTimes(latencies[i], latencies[len(all)-1])...)
			rows = append(rows, append(row, formatMillis(summarize(slices.Clone(latencies[i]), time.Second).percentile(0.99))))
		}
	}
	b.report.table(rows)
	return nil
}

// handOver holds a lock in the first storage, lets a client wait in the second, releases,
// and returns the time from the sent release to the waiter's grant.
func handOver(ctx context.Context, p *twoStorages, held time.Duration) (time.Duration, error) {
	first, second := newLockClient(p.first.url, 1), newLockClient(p.second.url, 1)
	defer first.close()
	defer second.close()
	user := uuid.NewString()
	id, err := first.acquire(ctx, user, 60_000, 0)
	if err != nil {
		return 0, err
	}
	release := time.NewTimer(held)
	type grant struct {
		id  string
		at  time.Time
		err error
	}
	granted := make(chan grant, 1)
	go func() {
		id, err := second.acquire(ctx, user, 60_000, 5000)
		granted <- grant{id, time.Now(), err}
	}()
	<-release.C
	released := time.Now()
	if err := first.release(ctx, id); err != nil {
		return 0, err
	}
	g := <-granted
	if g.err == nil && g.id == "" {
		g.err = errors.New("the waiter was refused")
	}
	if g.err != nil {
		return 0, g.err
	}
	return g.at.Sub(released), second.release(ctx, g.id)
}
