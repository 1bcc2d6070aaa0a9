package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"checkoutlock/integration-tests/mutualtls"
)

// Deep claims are as large as a claim can be: 63 paths of 64 segments begin with 4,095 paths.
const (
	deepClaims   = 60
	deepPaths    = 63
	deepSegments = 64
)

const (
	// neighbours are clients of other namespaces. They take steadyRate claims a second together.
	neighbours = 8
	// lineLanes is how many claims are sent at a time. More only wait for their namespace.
	lineLanes = 3
	// undisturbedFor is how long the neighbours are measured before a release.
	undisturbedFor = 2 * time.Second
)

// lineKind is a kind of claims that wait for one writer of /branch.
type lineKind struct {
	name    string // and the namespace
	length  int
	request func(i int) string // the resources of claim i, in JSON
}

func listLineKinds(b *bench) []lineKind {
	return []lineKind{
		{name: "writers", length: deepClaims, request: func(i int) string {
			steps := strings.Repeat(`"step",`, deepSegments-3)
			paths := make([]string, deepPaths)
			for j := range paths {
				paths[j] = fmt.Sprintf(`{"type":"write","path":["branch","claim-%d",%s"leaf-%d"]}`, i, steps, j)
			}
			return strings.Join(paths, ",")
		}},
		{name: "readers", length: b.claims, request: func(i int) string {
			return fmt.Sprintf(`{"type":"read","path":["branch"]},{"type":"read","path":["branch","shelf-%d"]}`, i)
		}},
	}
}

// releaseFigures are those of one release: the grants since it was sent, and how long the
// neighbours' grants took before it and until the last grant.
type releaseFigures struct {
	first, middle, last time.Duration
	undisturbed, during []time.Duration
}

// measureReleases measures releases for which many claims wait, and what other namespaces
// notice of them.
func measureReleases(ctx context.Context, b *bench) error {
	certs, err := mutualtls.WriteFiles(b.dir)
	if err != nil {
		return err
	}
	b.report.note("Claims wait for the writer of /branch, which releases it. Readers read /branch and a path below it. "+
		"Writers write %d paths of %d segments below it each. %d clients take %d claims a second in namespaces of their own. "+
		"Grants of the line are the median of %d releases, with the least and the greatest. "+
		"The 99th percentiles are of the others' grants in all releases.", deepPaths, deepSegments, neighbours, steadyRate, b.repetitions)
	rows := [][]string{{
		"what wait", "what", "first grant", "median grant", "last grant", "others' grant p99, undisturbed", "during the release", "of undisturbed",
	}}
	for _, build := range b.builds {
		if !build.hasResourceLocks() {
			continue
		}
		s, err := startResourceLocks(ctx, b, build, certs)
		if err != nil {
			return err
		}
		for _, kind := range listLineKinds(b) {
			var all []releaseFigures
			if all, err = releaseOften(ctx, b, s, kind); err != nil {
				break
			}
			rows = append(rows, append([]string{strconv.Itoa(kind.length) + " " + kind.name, s.name}, formatReleases(all)...))
		}
		if err := errors.Join(err, s.kill()); err != nil { // an orderly stop would end each claim in the database
			return err
		}
	}
	b.report.table(rows)
	return nil
}

func formatReleases(all []releaseFigures) []string {
	var cells []string
	for _, read := range []func(releaseFigures) time.Duration{
		func(f releaseFigures) time.Duration { return f.first },
		func(f releaseFigures) time.Duration { return f.middle },
		func(f releaseFigures) time.Duration { return f.last },
	} {
		cells = append(cells, formatSpread(all, read))
	}
	var before, during []time.Duration // one release has too few for a 99th percentile
	for _, f := range all {
		before, during = append(before, f.undisturbed...), append(during, f.during...)
	}
	undisturbed, disturbed := summarize(before, time.Second).percentile(0.99), summarize(during, time.Second).percentile(0.99)
	return append(cells, formatMillis(undisturbed), formatMillis(disturbed), formatRatio(disturbed.Seconds()/undisturbed.Seconds(), 1))
}

// formatSpread writes the median, the least and the greatest value.
func formatSpread[T any](all []T, read func(T) time.Duration) string {
	least, greatest := read(all[0]), read(all[0])
	for _, one := range all {
		least, greatest = min(least, read(one)), max(greatest, read(one))
	}
	return fmt.Sprintf("%s (%s to %s)", formatMillis(median(all, read)), formatMillis(least), formatMillis(greatest))
}

// releaseOften measures b.repetitions releases for which claims of a kind wait. It leaves the
// claims held, in a namespace of their kind.
func releaseOften(ctx context.Context, b *bench, s *lockService, kind lineKind) ([]releaseFigures, error) {
	writer, err := dialLocktopus(ctx, s.locktopus, kind.name)
	if err != nil {
		return nil, err
	}
	line, err := dialClaimClients(ctx, s.locktopus, kind.name, kind.length)
	if err != nil {
		return nil, err
	}
	others := make([]*claimClient, neighbours)
	for i := range others {
		if others[i], err = dialLocktopus(ctx, s.locktopus, "neighbour-"+strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	all := make([]releaseFigures, b.repetitions)
	for i := range all {
		if i > 0 {
			err = share(ctx, len(line), lineLanes, func(_ context.Context, i int) error { return line[i].release() })
		}
		if err == nil {
			all[i], err = releaseOnce(ctx, writer, line, others, kind)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// releaseOnce lets claims wait for the writer, and measures its release.
func releaseOnce(ctx context.Context, writer *claimClient, line, others []*claimClient, kind lineKind) (releaseFigures, error) {
	if err := writer.take(`{"type":"write","path":["branch"]}`, "acquired"); err != nil {
		return releaseFigures{}, err
	}
	wait := func(_ context.Context, i int) error { return line[i].take(kind.request(i), "enqueued") }
	if err := share(ctx, len(line), lineLanes, wait); err != nil {
		return releaseFigures{}, err
	}
	runtime.GC() // the load generator's own, which would delay what is measured
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	stop := takeSteadily(others)
	sleep(undisturbedFor)
	released := time.Now()
	grants := make([]time.Duration, len(line))
	err := writer.release()
	for i, c := range line {
		var at time.Time
		if err == nil {
			at, err = c.timeState("acquired")
		}
		grants[i] = at.Sub(released)
	}
	turns, steadyErr := stop()
	if err := errors.Join(err, steadyErr); err != nil {
		return releaseFigures{}, err
	}
	return summarizeRelease(grants, turns, released), nil
}

// take asks for resources, which are in JSON.
func (c *claimClient) take(resources, want string) error {
	if err := c.sendLock(resources); err != nil {
		return err
	}
	return c.wantState(want)
}

// steadyTurn is one grant of a neighbour.
type steadyTurn struct {
	due  time.Time
	took time.Duration // from due, so that a stall counts for each turn that it delays
}

// takeSteadily lets clients take and release a path at a steady rate, until stop is called.
func takeSteadily(clients []*claimClient) (stop func() ([]steadyTurn, error)) {
	interval := time.Second / steadyRate * time.Duration(len(clients))
	turns, errs := make([][]steadyTurn, len(clients)), make([]error, len(clients))
	over := make(chan struct{})
	began := time.Now()
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			due := began.Add(interval * time.Duration(i) / time.Duration(len(clients)))
			for ; errs[i] == nil; due = due.Add(interval) {
				sleep(max(0, time.Until(due)))
				select {
				case <-over:
					return
				default:
				}
				var turn steadyTurn
				turn, errs[i] = c.takeOnce(due)
				turns[i] = append(turns[i], turn)
			}
		})
	}
	return func() ([]steadyTurn, error) {
		close(over)
		wg.Wait()
		return slices.Concat(turns...), errors.Join(errs...)
	}
}

// takeOnce takes and releases a path for which no other client asks.
func (c *claimClient) takeOnce(due time.Time) (steadyTurn, error) {
	if err := c.sendLock(`{"type":"write","path":["own"]}`); err != nil {
		return steadyTurn{}, err
	}
	at, err := c.timeState("acquired")
	if err != nil {
		return steadyTurn{}, err
	}
	return steadyTurn{due, at.Sub(due)}, c.release()
}

// summarizeRelease makes figures of the grants since the release, and of the neighbours' turns.
func summarizeRelease(grants []time.Duration, turns []steadyTurn, released time.Time) releaseFigures {
	line := summarize(grants, time.Second)
	first, last := line.latencies[0], line.latencies[len(line.latencies)-1]
	var before, during []time.Duration
	for _, turn := range turns {
		switch {
		case turn.due.Before(released):
			before = append(before, turn.took)
		case !turn.due.After(released.Add(last)):
			during = append(during, turn.took)
		}
	}
	return releaseFigures{first, line.percentile(0.5), last, before, during}
}
