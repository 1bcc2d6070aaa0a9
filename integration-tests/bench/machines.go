package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"checkoutlock/devpostgres"
	"checkoutlock/schemas/pace"
)

const (
	machineCount = 500
	machineRate  = 100 // messages a second, of all together
	machineLoad  = 45  // slices of time
	// lentBefore is what was lent before: items that are renewed in turn, and then those that come
	// back first.
	lentBefore, renewedInTurn = 300, 100
)

// machineMix is what machines send, in turn: a patron's page, their items, items of others that come
// back, a renewal, and now and then the status.
var machineMix = strings.Fields("63 11 11 09 63 11 29 11 09 99 63 11 11 09 63 11 29 63 09 99")

// machineKinds are those messages, and how the answer begins if they succeed.
var machineKinds = map[string]struct{ name, answer string }{
	"11": {"check-out (11)", "121NUY"}, "09": {"check-in (09)", "101Y"}, "29": {"renewal (29)", "301Y"},
	"63": {"patron information (63)", "64"}, "99": {"status (99)", "98YYY"},
}

// machineHall is a desk with machines.
type machineHall struct {
	*desk
	addr     string
	machines []*machine
	first    int // the first item
	lent     int // items in the order of their numbers
	back     int // items in the same order that came back
}

// measureMachines measures 500 machines: how they sign in, what they send, and how they come back.
func measureMachines(ctx context.Context, b *bench) (err error) {
	h, err := openMachineHall(ctx, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	b.report.note("%d machines keep their connections. PostgreSQL, both services and the machines share the processors.", machineCount)
	logins := [][]string{{
		"all machines sign in at once", "the last one after", "refused (940)", "no answer within " + loginPatience.String(),
		"check-outs meanwhile", "p50", "p99",
	}}
	for _, storm := range []struct {
		name    string
		restart func(context.Context) error
	}{
		{"for the first time", func(context.Context) error { return nil }},
		{"after a restart of circulation", h.restartCirculation},
		{"after a restart of circulation and storage", h.restartBoth},
	} {
		row, err := h.storm(ctx, storm.restart)
		if err != nil {
			return fmt.Errorf("signing in %s: %w", storm.name, err)
		}
		logins = append(logins, append([]string{storm.name}, row...))
	}
	b.report.table(logins)
	return h.reportLoad(ctx)
}

// openMachineHall starts a desk, and makes the terminals with a password each.
func openMachineHall(ctx context.Context, b *bench) (_ *machineHall, err error) {
	port, err := devpostgres.FindFreePort(ctx)
	if err != nil {
		return nil, err
	}
	h := &machineHall{addr: "127.0.0.1:" + strconv.Itoa(port)}
	build := b.builds[0]
	build.environ = []string{"SIP2_ADDR=" + h.addr}
	if h.desk, err = startDesk(ctx, b, build, noLimit, detours{}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if err := h.turn(ctx, true); err != nil {
		return nil, err
	}
	storage := h.machine
	storage.Base = h.storage.url
	err = share(ctx, machineCount, 4, func(ctx context.Context, i int) error {
		login := fmt.Sprintf("machine-%d", i)
		_, err := storage.Must(ctx, http.MethodPost, "/self-check-terminals", map[string]any{
			"login": login, "name": login, "password": login + "-password", "servicePointId": h.shelf.ServicePointID,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range machineCount {
		h.machines = append(h.machines, newMachine(i))
	}
	messages := int(machineLoad*b.slice.Seconds()) * machineRate
	h.first, err = h.shelf.addCopies(ctx, lentBefore+messages+stormCheckOuts*3)
	return h, err
}

func (h *machineHall) close() error {
	for _, m := range h.machines {
		m.hangUp()
	}
	return h.stop()
}

func (h *machineHall) restartCirculation(ctx context.Context) (err error) {
	if err := h.circulation.kill(); err != nil {
		return err
	}
	h.circulation, err = h.build.startCirculation(ctx, h.storage.url)
	if err == nil {
		h.machine.Base = h.circulation.url
	}
	return err
}

func (h *machineHall) restartBoth(ctx context.Context) (err error) {
	if err := h.storage.kill(); err != nil {
		return err
	}
	if h.storage, err = h.build.startStorage(ctx, h.shelf.pool.Config().ConnString()); err != nil {
		return err
	}
	return h.restartCirculation(ctx)
}

// stormCheckOuts bounds the check-outs while machines sign in, at half the rate of the load.
const stormCheckOuts = 50 * machineRate / 2

// storm lets all machines sign in after a restart, while others lend over HTTP.
func (h *machineHall) storm(ctx context.Context, restart func(context.Context) error) ([]string, error) {
	if err := restart(ctx); err != nil {
		return nil, err
	}
	lending, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	var lent figures
	go func() {
		var err error
		lent, err = h.lendSteadily(lending)
		done <- err
	}()
	took, refused, hungUp, err := connectAll(ctx, h.machines, h.addr)
	pace.Wait(ctx, h.bench.slice) // for more check-outs than a short storm meets
	stop()
	if err = errors.Join(err, <-done); err != nil {
		return nil, err
	}
	return []string{
		formatMillis(took), strconv.Itoa(refused), strconv.Itoa(hungUp), strconv.Itoa(len(lent.latencies)),
		formatMillis(lent.percentile(0.5)), formatMillis(lent.percentile(0.99)),
	}, nil
}

// lendSteadily lends an item every 20 ms until ctx ends. A check-out counts from when it was due.
func (h *machineHall) lendSteadily(ctx context.Context) (figures, error) {
	var load openLoad
	n := load.run(ctx, stormCheckOuts, machineRate/2, func(i int) (string, string, error) {
		item := h.first + h.lent + i
		return "11", "", h.lend(context.WithoutCancel(ctx), item, item)
	})
	h.lent += n
	h.back = h.lent // those stay lent: the patrons have one each
	return summarize(load.latencies["11"], time.Second), load.err
}

// openLoad sends at a fixed rate, whatever the answers take.
type openLoad struct {
	mu        sync.Mutex
	latencies map[string][]time.Duration
	failures  map[string][]string
	err       error
}

// run sends up to n operations, and returns how many it sent before ctx ended. operate returns the kind
// of operation, and what is wrong with its answer.
func (l *openLoad) run(ctx context.Context, n, perSecond int, operate func(i int) (kind, wrong string, err error)) int {
	l.latencies, l.failures = map[string][]time.Duration{}, map[string][]string{}
	var wg sync.WaitGroup
	defer wg.Wait()
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		if !pace.Wait(ctx, time.Until(due)) {
			return i
		}
		wg.Go(func() {
			kind, wrong, err := operate(i)
			l.note(kind, wrong, err, time.Since(due))
		})
	}
	return n
}

func (l *openLoad) note(kind, wrong string, err error, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latencies[kind] = append(l.latencies[kind], took)
	if wrong != "" {
		l.failures[kind] = append(l.failures[kind], wrong)
	}
	if err != nil && l.err == nil {
		l.err = err
	}
}

// reportLoad lets the machines send what machines send, and reads the memory meanwhile.
func (h *machineHall) reportLoad(ctx context.Context) error {
	idle, err := h.circulation.memory()
	if err != nil {
		return err
	}
	if err := h.lendBefore(ctx); err != nil {
		return err
	}
	most, stop := h.watchMemory(ctx)
	var load openLoad
	f, err := h.measure(func() (figures, error) {
		messages, began := int(machineLoad*h.bench.slice.Seconds())*machineRate, time.Now()
		load.run(ctx, messages, machineRate, h.newMessages())
		return summarize(slices.Concat(slices.Collect(maps.Values(load.latencies))...), time.Since(began)), load.err
	})
	stop()
	if err != nil {
		return err
	}
	h.bench.report.note("Then they send %d messages a second for %s. A time counts from when the message was due.",
		machineRate, time.Duration(machineLoad)*h.bench.slice)
	rows := [][]string{{"message", "sent", "p50", "p99", "longest", "other answers"}}
	for _, kind := range slices.Sorted(maps.Keys(load.latencies)) {
		one := summarize(load.latencies[kind], time.Second)
		rows = append(rows, []string{
			machineKinds[kind].name, strconv.Itoa(len(one.latencies)), formatMillis(one.percentile(0.5)), formatMillis(one.percentile(0.99)),
			formatMillis(one.percentile(1)), strconv.Itoa(len(load.failures[kind])),
		})
		if len(load.failures[kind]) > 0 {
			h.bench.report.note("An answer to %s: %s", kind, load.failures[kind][0])
		}
	}
	h.bench.report.table(rows)
	h.bench.report.note("Memory of circulation: %s before the load, %s at most. CPU of a message: %d us of the services, %d us of "+
		"PostgreSQL; together %.0f %% of a processor.", idle, <-most, f.services.Microseconds(),
		f.postgreSQL.Microseconds(), 100*(f.services+f.postgreSQL).Seconds()*machineRate)
	return nil
}

// lendBefore lends what comes back during the load.
func (h *machineHall) lendBefore(ctx context.Context) error {
	first := h.first + h.lent
	h.back = h.lent
	h.lent += lentBefore
	return share(ctx, lentBefore, 4, func(ctx context.Context, i int) error { return h.lend(ctx, first+i, first+i) })
}

// watchMemory reads the memory of circulation until stop, and then sends the most that it was.
func (h *machineHall) watchMemory(ctx context.Context) (most <-chan memory, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	result := make(chan memory, 1)
	go func() {
		var seen memory
		for range pace.Every(ctx, 0, 100*time.Millisecond) {
			if now, err := h.circulation.memory(); err == nil && now.all > seen.all {
				seen = now
			}
		}
		result <- seen
	}()
	return result, stop
}

// newMessages returns the messages of the load, which the machines send in turn. A patron borrows three
// items; what comes back or is renewed was lent a while ago.
func (h *machineHall) newMessages() func(i int) (kind, wrong string, err error) {
	counts := map[string]int{}
	firstItem, firstBack := h.first+h.lent, h.first+h.back
	next := func(i int) (kind, line string) {
		kind = machineMix[i%len(machineMix)]
		n := counts[kind]
		counts[kind]++
		now := time.Now().Format("20060102    150405")
		patron := fmt.Sprintf("|AAp%d|", firstItem+n/3*3)
		switch kind {
		case "11":
			return kind, "11NN" + now + "                  AObench" + patron + fmt.Sprintf("ABi%d|AC|", firstItem+n)
		case "09":
			return kind, "09N" + now + now + "AP|AObench|AB" + fmt.Sprintf("i%d|AC|", firstBack+renewedInTurn+n)
		case "29":
			renewed := firstBack + n%renewedInTurn
			return kind, "29NN" + now + "                  AObench|AA" + fmt.Sprintf("p%d|ABi%d|AC|", renewed, renewed)
		case "63":
			return kind, "63001" + now + "          AObench" + patron + "AC|AD|"
		default:
			return kind, "9900802.00"
		}
	}
	var mu sync.Mutex
	return func(i int) (string, string, error) {
		mu.Lock()
		kind, line := next(i)
		mu.Unlock()
		answer, err := h.machines[i%machineCount].ask(line)
		if !strings.HasPrefix(answer, machineKinds[kind].answer) {
			return kind, answer, err
		}
		return kind, "", err
	}
}
