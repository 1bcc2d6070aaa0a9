package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/integration-tests/stack"
)

// tenantSetup is a way to serve many tenants: a database of the cluster, a storage and a circulation for
// each group of them, as a map on X-Okapi-Tenant leads them.
type tenantSetup struct {
	name        string
	connections int   // of each storage
	each        int   // tenants of one group at most
	tenants     []int // how many are served, in turn
}

var tenantSetups = []tenantSetup{
	{name: "one group, 20 connections", connections: 20, each: 60, tenants: []int{1, 20, 60}},
	{name: "one group, 4 connections", connections: 4, each: 60, tenants: []int{1, 20, 60}},
	{name: "a group for 20 tenants, 4 connections each", connections: 4, each: 20, tenants: []int{1, 60}},
	{name: "a group for 30 tenants, 2 connections each", connections: 2, each: 30, tenants: []int{1, 300}},
}

// tenantClients check out at once, so that all connections of a storage meet all its tenants.
const tenantClients = 8

// tenantTurns is how often a setup lends for each repetition.
const tenantTurns = 5

// measureTenants measures check-outs of 1 to 300 tenants.
func measureTenants(ctx context.Context, b *bench) error {
	b.report.note("A group has a database, a storage and a circulation. One client, after %d clients have used all connections. "+
		"It takes the tenants in turn. Each setup is compared with its own figure of one tenant, in %d turns each. "+
		"Memory is what the backends of the storages have for themselves.", tenantClients, tenantTurns*b.repetitions)
	rows := [][]string{{"setup", "tenants", "a check-out, p50", "of one tenant", "p99", "CPU us, services / PostgreSQL", "memory of the backends"}}
	for _, setup := range tenantSetups {
		compared, err := setup.compare(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", setup.name, err)
		}
		rows = append(rows, compared...)
	}
	b.report.table(rows)
	return nil
}

// house is the processes that serve some tenants in one setup.
type house struct {
	bench *bench
	setup tenantSetup
	name  string  // of its connections
	desks []*desk // one for each tenant; those of a group share their processes
	pools []*pgxpool.Pool
	all   []*process
}

// compare lets houses lend that differ in their number of tenants. They take turns, so that a slow
// moment of the machine meets all of them. It returns a row for each.
func (s tenantSetup) compare(ctx context.Context, b *bench) (rows [][]string, err error) {
	houses := make([]*house, len(s.tenants))
	defer func() {
		for _, h := range houses {
			err = errors.Join(err, h.stop())
		}
	}()
	for i, tenants := range s.tenants {
		houses[i] = &house{bench: b, setup: s, name: "tenants" + strconv.Itoa(tenants)}
		if err := houses[i].open(ctx, tenants); err != nil {
			return nil, err
		}
	}
	all := make([][]deskFigures, len(houses))
	for turn := range 1 + tenantTurns*b.repetitions {
		for i, h := range houses {
			f, err := h.lend(ctx, turn == 0)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], f)
		}
	}
	for i, h := range houses {
		memory, err := h.memory(ctx)
		if err != nil {
			return nil, err
		}
		p50, one := median(all[i][1:], readDeskP50), median(all[0][1:], readDeskP50)
		rows = append(rows, []string{
			s.name, strconv.Itoa(s.tenants[i]), formatMillis(time.Duration(p50)), formatRatio(p50, one),
			formatMillis(time.Duration(median(all[i][1:], readDeskP99))), formatCPU(all[i][1:]), formatMegabytes(memory),
		})
	}
	return rows, nil
}

// open starts the processes, and makes the tenants and what they will lend.
func (h *house) open(ctx context.Context, tenants int) error {
	for i := range tenants {
		if i%h.setup.each == 0 {
			if err := h.startGroup(ctx); err != nil {
				return err
			}
		}
		storage, circulation := h.all[len(h.all)-2], h.all[len(h.all)-1]
		name := "library" + strconv.Itoa(i)
		s, err := newShelfOf(ctx, name, storage.url, h.pools[len(h.pools)-1], noLimit)
		if err != nil {
			return err
		}
		warm, each := countRounds(tenants)
		if _, err := s.addCopies(ctx, warm+each*tenantTurns*h.bench.repetitions); err != nil {
			return err
		}
		h.desks = append(h.desks, &desk{
			bench: h.bench, build: h.bench.builds[0], storage: storage, circulation: circulation, shelf: s,
			machine: stack.Client{Base: circulation.url, Tenant: name, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}},
		})
	}
	return nil
}

// countRounds returns how many items of each tenant are lent at first, and in each turn. At first they
// are so many that all connections have planned all statements, and that no table grows fourfold
// while the clock runs: see database.plans.
func countRounds(tenants int) (warm, each int) {
	return max(400/tenants, min(80, 6000/tenants)), max(120/tenants, 1)
}

// startGroup starts a storage and a circulation on a database of their own.
func (h *house) startGroup(ctx context.Context) error {
	build := h.bench.builds[0]
	databaseURL, err := h.bench.db.fork(ctx, h.name+"_"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, databaseURL)
	if err != nil {
		return err
	}
	h.pools = append(h.pools, pool)
	storage, err := build.startStorage(ctx, databaseURL+"&application_name="+h.name, "DATABASE_MAX_CONNS="+strconv.Itoa(h.setup.connections))
	if err != nil {
		return err
	}
	h.all = append(h.all, storage)
	circulation, err := build.startCirculation(ctx, storage.url, "CHECKOUT_LOCK_FEATURE_ENABLED=true")
	if err != nil {
		return err
	}
	h.all = append(h.all, circulation)
	return nil
}

func (h *house) stop() error {
	if h == nil {
		return nil
	}
	var errs []error
	for i := len(h.all) - 1; i >= 0; i-- {
		errs = append(errs, h.all[i].stop())
	}
	for _, pool := range h.pools {
		pool.Close()
	}
	return errors.Join(errs...)
}

// lend lends items of each tenant, which takes turns. At first all connections are used.
func (h *house) lend(ctx context.Context, first bool) (f deskFigures, err error) {
	warm, rounds := countRounds(len(h.desks))
	clients := 1
	if first {
		rounds, clients = warm, tenantClients
	}
	n := rounds * len(h.desks)
	services, postgreSQL, err := h.processorTimes()
	if err != nil {
		return f, err
	}
	latencies, began := make([]time.Duration, n), time.Now()
	err = share(ctx, n, clients, func(ctx context.Context, i int) error {
		d := h.desks[i%len(h.desks)]
		number := int(d.shelf.lent.Add(1))
		start := time.Now()
		err := d.lend(ctx, number, number)
		latencies[i] = time.Since(start)
		return err
	})
	f = deskFigures{figures: summarize(latencies, time.Since(began))}
	if err != nil {
		return f, err
	}
	usedByServices, usedByPostgreSQL, err := h.processorTimes()
	f.services, f.postgreSQL = (usedByServices-services)/time.Duration(n), (usedByPostgreSQL-postgreSQL)/time.Duration(n)
	return f, err
}

func (h *house) processorTimes() (services, postgreSQL time.Duration, err error) {
	for _, p := range h.all {
		used, err := p.cpu()
		if err != nil {
			return 0, 0, err
		}
		services += used
	}
	postgreSQL, err = h.bench.db.cpu()
	return services, postgreSQL, err
}

// memory returns the bytes that the storages' backends have for themselves.
func (h *house) memory(ctx context.Context) (int, error) {
	rows, err := h.bench.db.pool.Query(ctx, `SELECT pid FROM pg_stat_activity WHERE application_name = $1`, h.name)
	if err != nil {
		return 0, err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return 0, err
	}
	total := 0
	for _, pid := range pids {
		own, err := readAnonymous(pid)
		if err != nil {
			return 0, err
		}
		total += own
	}
	return total, nil
}

// readAnonymous returns the bytes of a process that no file and no other process has.
func readAnonymous(pid int) (int, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "Pss_Anon:" {
			kilobytes, err := strconv.Atoi(fields[1])
			return kilobytes << 10, err
		}
	}
	return 0, errors.Join(lines.Err(), errors.New("smaps_rollup has no Pss_Anon"))
}
