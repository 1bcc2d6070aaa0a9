package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// contender is something that the lock's measurements compare.
type contender struct {
	name    string
	process *process // nil for the floor
	cycle   func(ctx context.Context, user string) error
	client  *lockClient
}

// rig is the running contenders of the sections about locks.
type rig struct {
	contenders []contender
	processes  []*process
}

// startRig starts ceiling, plain service and each build's storage, and the floor.
func startRig(ctx context.Context, b *bench) (_ *rig, err error) {
	r := &rig{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.stop())
		}
	}()
	add := func(name string, p *process) {
		client := newLockClient(p.url, 64)
		r.processes = append(r.processes, p)
		r.contenders = append(r.contenders, contender{name: name, process: p, client: client, cycle: client.cycle})
	}
	ceiling, err := startYardstick(ctx, "ceiling")
	if err != nil {
		return nil, err
	}
	add("ceiling", ceiling)
	databaseURL, err := b.db.fork(ctx, "plain_"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		return nil, err
	}
	plain, err := startYardstick(ctx, "plain", "DATABASE_URL="+databaseURL)
	if err != nil {
		return nil, err
	}
	add("plain", plain)
	for _, build := range b.builds {
		storage, _, err := startStorageWithTenant(ctx, b, build)
		if err != nil {
			return nil, err
		}
		add(build.name, storage)
	}
	floor, err := newFloor(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	r.contenders = append(r.contenders, contender{name: "floor", cycle: floor.cycle})
	return r, nil
}

func (r *rig) stop() error { return stopAll(r.processes...) }

// startStorageWithTenant starts a storage on a database of its own and installs the tenant.
func startStorageWithTenant(ctx context.Context, b *bench, build build) (*process, string, error) {
	databaseURL, err := b.db.fork(ctx, build.name+"_"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		return nil, "", err
	}
	storage, err := build.startStorage(ctx, databaseURL)
	if err != nil {
		return nil, "", err
	}
	if err := (stack.Client{Base: storage.url, Tenant: tenant}).InstallTenant(ctx, false); err != nil {
		return nil, "", errors.Join(err, storage.stop())
	}
	return storage, databaseURL, nil
}

// serviceFigures are one repetition of lock cycles.
type serviceFigures struct {
	figures
	cpu         [3]time.Duration // of client, service and PostgreSQL, for one cycle
	allocations float64          // in the service, for one cycle
}

func measureLocks(ctx context.Context, b *bench) (err error) {
	r, err := startRig(ctx, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	b.report.note("Acquire and release on patrons of their own, over HTTP; *floor* sends two statements by pgx from the client.")
	rows := [][]string{{"clients", "what", "lock cycles/s", "of the ceiling", "of plain", "p50", "p99", "CPU us client / service / PostgreSQL", "allocations"}}
	for _, clients := range []int{1, 8, 64} {
		more, err := comparePairs(ctx, b, r, clients)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	b.report.table(rows)
	return measureDenied(ctx, b, r)
}

func comparePairs(ctx context.Context, b *bench, r *rig, clients int) ([][]string, error) {
	all := map[string][]serviceFigures{}
	for range b.repetitions {
		for _, c := range r.contenders {
			f, err := driveCycles(ctx, b, c, clients)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			all[c.name] = append(all[c.name], f)
		}
	}
	rate := func(name string) float64 {
		return median(all[name], func(f serviceFigures) float64 { return f.perSecond })
	}
	var rows [][]string
	for _, c := range r.contenders {
		rows = append(rows, []string{
			strconv.Itoa(clients), c.name, fmt.Sprintf("%.0f", rate(c.name)),
			formatRatio(rate(c.name), rate("ceiling")), formatRatio(rate(c.name), rate("plain")),
			formatMillis(median(all[c.name], func(f serviceFigures) time.Duration { return f.percentile(0.5) })),
			formatMillis(median(all[c.name], func(f serviceFigures) time.Duration { return f.percentile(0.99) })),
			formatProcessorTimes(all[c.name]),
			fmt.Sprintf("%.0f", median(all[c.name], func(f serviceFigures) float64 { return f.allocations })),
		})
	}
	return rows, nil
}

func driveCycles(ctx context.Context, b *bench, c contender, clients int) (serviceFigures, error) {
	users := newIDs(clients)
	return driveMeasured(ctx, b, c.process, clients, func(ctx context.Context, client, _ int) error { return c.cycle(ctx, users[client]) })
}

// driveMeasured is drive with the processor times for one operation.
func driveMeasured(ctx context.Context, b *bench, p *process, clients int, operate func(context.Context, int, int) error) (serviceFigures, error) {
	before, err := readUsage(ctx, b, p)
	if err != nil {
		return serviceFigures{}, err
	}
	f, err := drive(ctx, clients, b.slice, operate)
	if err != nil {
		return serviceFigures{}, err
	}
	after, err := readUsage(ctx, b, p)
	if err != nil {
		return serviceFigures{}, err
	}
	result, n := serviceFigures{figures: f}, len(f.latencies)
	for i := range result.cpu {
		result.cpu[i] = (after.cpu[i] - before.cpu[i]) / time.Duration(n)
	}
	result.allocations = (after.allocations - before.allocations) / float64(n)
	return result, nil
}

// formatProcessorTimes writes the medians in microseconds.
func formatProcessorTimes(all []serviceFigures) string {
	var times []string
	for i := range 3 {
		used := median(all, func(f serviceFigures) time.Duration { return f.cpu[i] })
		times = append(times, strconv.FormatInt(used.Microseconds(), 10))
	}
	return strings.Join(times, " / ")
}

// usage is what client, service and PostgreSQL used so far.
type usage struct {
	cpu         [3]time.Duration
	allocations float64
}

func readUsage(ctx context.Context, b *bench, service *process) (u usage, err error) {
	if u.cpu[0], err = ownProcessorTime(); err != nil {
		return u, err
	}
	if u.cpu[2], err = b.db.cpu(); err != nil {
		return u, err
	}
	if service == nil {
		return u, nil
	}
	if u.cpu[1], err = service.cpu(); err != nil {
		return u, err
	}
	if n, err := service.allocations(ctx); err == nil { // the yardsticks have no metrics
		u.allocations = n
	}
	return u, nil
}

// measureDenied lets 8 clients ask for a lock that stays held.
func measureDenied(ctx context.Context, b *bench, r *rig) error {
	all := map[string][]figures{}
	for range b.repetitions {
		for _, c := range r.contenders {
			if c.client == nil || c.name == "ceiling" {
				continue
			}
			user := uuid.NewString()
			held, err := c.client.acquire(ctx, user, 600_000, 0)
			if err != nil {
				return err
			}
			f, err := drive(ctx, 8, b.slice, func(ctx context.Context, _, _ int) error {
				id, err := c.client.acquire(ctx, user, 600_000, 0)
				if err == nil && id != "" {
					err = errors.New("a held lock was granted")
				}
				return err
			})
			if err != nil {
				return err
			}
			all[c.name] = append(all[c.name], f)
			if err := c.client.release(ctx, held); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"8 clients ask in vain", "refusals/s", "of plain", "p50", "p99"}}
	for _, c := range r.contenders {
		if all[c.name] == nil {
			continue
		}
		rows = append(rows, []string{
			c.name, fmt.Sprintf("%.0f", median(all[c.name], readRate)),
			formatRatio(median(all[c.name], readRate), median(all["plain"], readRate)),
			formatMillis(median(all[c.name], readP50)), formatMillis(median(all[c.name], readP99)),
		})
	}
	b.report.table(rows)
	return nil
}

// newIDs returns n UUIDs.
func newIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	return ids
}
