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

// tenantSetup is a way to serve many tenants.
type tenantSetup struct {
	name        string
	parameters  string // of DATABASE_URL
	connections int    // of each storage
	each        int    // tenants of one storage at most
	tenants     []int  // how many are served, in turn
}

var tenantSetups = []tenantSetup{
	{name: "one storage, 20 connections", connections: 20, each: 60, tenants: []int{1, 20, 60}},
	{name: "one storage, 4 connections", connections: 4, each: 60, tenants: []int{1, 20, 60}},
	{name: "a storage for 60 tenants, 3 connections each", connections: 3, each: 60, tenants: []int{1, 300}},
}

// tenantClients check out at once, so that all connections of a storage meet all its tenants.
const tenantClients = 8

// measureTenants measures check-outs of 1 to 300 tenants in turn.
func measureTenants(ctx context.Context, b *bench) (err error) {
	databaseURL, err := b.db.fork(ctx, "tenants_"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	b.report.note("One client, after %d clients have used all connections. It takes the tenants in turn. Each setup is compared with "+
		"its own figure of one tenant. Memory is what the backends of the storages have for themselves.", tenantClients)
	rows := [][]string{{"setup", "tenants", "a check-out, p50", "of one tenant", "p99", "CPU us, services / PostgreSQL", "memory of the backends"}}
	var shelves []*shelf
	for _, setup := range tenantSetups {
		var one time.Duration
		for _, tenants := range setup.tenants {
			h := &house{bench: b, setup: setup, pool: pool}
			f, memory, err := h.measure(ctx, databaseURL, &shelves, tenants)
			if err = errors.Join(err, h.stop()); err != nil {
				return fmt.Errorf("%s, %d tenants: %w", setup.name, tenants, err)
			}
			p50 := time.Duration(readDeskP50(f))
			if tenants == 1 {
				one = p50
			}
			rows = append(rows, []string{
				setup.name, strconv.Itoa(tenants), formatMillis(p50), formatRatio(float64(p50), float64(one)),
				formatMillis(time.Duration(readDeskP99(f))), formatCPU([]deskFigures{f}), formatMegabytes(memory),
			})
		}
	}
	b.report.table(rows)
	return nil
}

// house is the processes of one setup.
type house struct {
	bench *bench
	setup tenantSetup
	pool  *pgxpool.Pool
	desks []*desk // one for each tenant; those of a group share their processes
	all   []*process
}

// measure starts the processes, makes the tenants that are missing, and lets them lend.
func (h *house) measure(ctx context.Context, databaseURL string, shelves *[]*shelf, tenants int) (f deskFigures, memory int, err error) {
	for i := range tenants {
		if i%h.setup.each == 0 {
			if err := h.startGroup(ctx, databaseURL); err != nil {
				return f, 0, err
			}
		}
		storage, circulation := h.all[len(h.all)-2], h.all[len(h.all)-1]
		name := "library" + strconv.Itoa(i)
		if i == len(*shelves) {
			s, err := newShelfOf(ctx, name, storage.url, h.pool, noLimit)
			if err != nil {
				return f, 0, err
			}
			*shelves = append(*shelves, s)
		}
		h.desks = append(h.desks, &desk{
			bench: h.bench, build: h.bench.builds[0], storage: storage, circulation: circulation, shelf: (*shelves)[i],
			machine: stack.Client{Base: circulation.url, Tenant: name, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}},
		})
	}
	// So many that all connections have planned all statements, and that no table grows fourfold while
	// the clock runs: see database.plans.
	warm, rounds := max(400/tenants, min(80, 6000/tenants)), max(200/tenants, 5) // of each tenant
	for _, d := range h.desks {
		if _, err := d.shelf.addCopies(ctx, warm+rounds); err != nil {
			return f, 0, err
		}
	}
	if _, err := h.lend(ctx, warm, tenantClients, warm+rounds); err != nil {
		return f, 0, err
	}
	if f, err = h.lend(ctx, rounds, 1, rounds); err != nil {
		return f, 0, err
	}
	memory, err = h.memory(ctx)
	return f, memory, err
}

// startGroup starts a storage and a circulation.
func (h *house) startGroup(ctx context.Context, databaseURL string) error {
	build := h.bench.builds[0]
	storage, err := build.startStorage(ctx, databaseURL+"&application_name=measured"+h.setup.parameters,
		"DATABASE_MAX_CONNS="+strconv.Itoa(h.setup.connections))
	if err != nil {
		return err
	}
	circulation, err := build.startCirculation(ctx, storage.url, "CHECKOUT_LOCK_FEATURE_ENABLED=true")
	if err != nil {
		return errors.Join(err, storage.stop())
	}
	h.all = append(h.all, storage, circulation)
	return nil
}

func (h *house) stop() error {
	var errs []error
	for i := len(h.all) - 1; i >= 0; i-- {
		errs = append(errs, h.all[i].stop())
	}
	return errors.Join(errs...)
}

// lend lends so many items of each tenant, which takes turns. The first one is left from the last made.
func (h *house) lend(ctx context.Context, rounds, clients, left int) (deskFigures, error) {
	n := rounds * len(h.desks)
	services, postgreSQL, err := h.processorTimes()
	if err != nil {
		return deskFigures{}, err
	}
	latencies, began := make([]time.Duration, n), time.Now()
	err = share(ctx, n, clients, func(ctx context.Context, i int) error {
		d := h.desks[i%len(h.desks)]
		number := d.shelf.made - left + 1 + i/len(h.desks)
		start := time.Now()
		err := d.lend(ctx, number, number)
		latencies[i] = time.Since(start)
		return err
	})
	f := deskFigures{figures: summarize(latencies, time.Since(began))}
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
	rows, err := h.pool.Query(ctx, `SELECT pid FROM pg_stat_activity WHERE application_name = 'measured'`)
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
