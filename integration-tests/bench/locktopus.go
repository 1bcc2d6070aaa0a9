package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"checkoutlock/integration-tests/mutualtls"
)

// steadyRate is how many claims a second end and queue up anew then, for steadyTime.
const (
	steadyRate = 200
	steadyTime = 10 * time.Second
)

// claimPaths is how many paths the waiting claims share.
const claimPaths = 100

// claimClient is a connection of Locktopus. It reads all the time, so that it answers
// pings.
type claimClient struct {
	ws     *websocket.Conn
	states chan claimState // of the messages; closed with the connection
}

// claimState is the state in a message, and when the message came.
type claimState struct {
	name string
	at   time.Time
}

func dialLocktopus(ctx context.Context, addr, namespace string) (*claimClient, error) {
	dialer := websocket.Dialer{ReadBufferSize: 512, WriteBufferSize: 512}
	ws, answer, err := dialer.DialContext(ctx, "ws://"+addr+"/v1?namespace="+namespace, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting with Locktopus: %w", err)
	}
	c := &claimClient{ws: ws, states: make(chan claimState, 4)}
	go c.read()
	return c, answer.Body.Close()
}

// read passes the states on until the connection ends, and closes it then.
func (c *claimClient) read() {
	defer func() { _ = c.ws.Close() }()
	defer close(c.states)
	for {
		var message struct {
			State string `json:"state"`
		}
		if c.ws.ReadJSON(&message) != nil {
			return
		}
		c.states <- claimState{message.State, time.Now()}
	}
}

// enqueue asks for a path and returns the state in the answer: enqueued or acquired.
func (c *claimClient) enqueue(path string) (string, error) {
	if err := c.sendLock(`{"type":"write","path":["` + path + `"]}`); err != nil {
		return "", err
	}
	state, err := c.readState()
	return state.name, err
}

// sendLock asks for resources, which are in JSON.
func (c *claimClient) sendLock(resources string) error {
	return c.ws.WriteMessage(websocket.TextMessage, []byte(`{"action":"lock","resources":[`+resources+`]}`))
}

func (c *claimClient) readState() (claimState, error) {
	state, open := <-c.states
	if !open {
		return state, errors.New("the connection has ended")
	}
	return state, nil
}

// wantState reads the next message.
func (c *claimClient) wantState(want string) error {
	_, err := c.timeState(want)
	return err
}

// timeState reads the next message and returns when it came.
func (c *claimClient) timeState(want string) (time.Time, error) {
	state, err := c.readState()
	if err == nil && state.name != want {
		err = fmt.Errorf("the state is %q instead of %q", state.name, want)
	}
	return state.at, err
}

func (c *claimClient) release() error {
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(`{"action":"release"}`)); err != nil {
		return err
	}
	return c.wantState("ready")
}

// dialClaimClients opens n connections, eight at a time.
func dialClaimClients(ctx context.Context, addr, namespace string, n int) ([]*claimClient, error) {
	clients := make([]*claimClient, n)
	err := inParallel(n, func(i int) (err error) {
		clients[i], err = dialLocktopus(ctx, addr, namespace)
		return err
	})
	return clients, err
}

// inParallel calls f for 0 to n-1, eight at a time, and returns the first errors.
func inParallel(n int, f func(i int) error) error {
	const lanes = 8
	errs := make([]error, lanes)
	var wg sync.WaitGroup
	for w := range lanes {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += lanes {
				errs[w] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// measureLocktopus measures hand-overs of one path, and the work with a long line.
func measureLocktopus(ctx context.Context, b *bench) error {
	certs, err := mutualtls.WriteFiles(b.dir)
	if err != nil {
		return err
	}
	b.report.note("%d clients take one path %d times each and hold it for %s: %s at best.", workers, turns, holdFor, idealTime)
	contended := [][]string{{"what", "total", "of the ideal", "of the holds as they were", "a hold", "wait p50", "wait p99"}}
	waiting := [][]string{{strconv.Itoa(b.claims) + " claims wait", "stored in", "enqueue p50", "p99", "grant p50", "p99", "memory of the service"}}
	for _, build := range b.builds {
		if !build.hasResourceLocks() {
			continue
		}
		s, err := startResourceLocks(ctx, b, build, certs)
		if err != nil {
			return err
		}
		more, err := contendForPath(ctx, b, s)
		if err == nil {
			contended = append(contended, more)
			more, err = measureWaiting(ctx, b, s)
			waiting = append(waiting, more)
		}
		if err := errors.Join(err, s.kill()); err != nil { // an orderly stop would end each claim in the database
			return err
		}
	}
	b.report.table(contended)
	b.report.note("%d claims a second end and queue up anew for %s, on %d paths of one namespace.", steadyRate, steadyTime, claimPaths)
	b.report.table(waiting)
	return nil
}

func contendForPath(ctx context.Context, b *bench, s *lockService) ([]string, error) {
	clients, err := dialClaimClients(ctx, s.locktopus, "contended", workers)
	if err != nil {
		return nil, err
	}
	var all []figures
	var totals []time.Duration
	var held []time.Duration // of each repetition, all holds together
	for range b.repetitions {
		waits, holds := make([]time.Duration, workers*turns), make([]time.Duration, workers*turns)
		began := time.Now()
		var wg sync.WaitGroup
		errs := make([]error, workers)
		for i, c := range clients {
			wg.Go(func() {
				for turn := 0; turn < turns && errs[i] == nil; turn++ {
					waits[i*turns+turn], holds[i*turns+turn], errs[i] = c.holdOnce()
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		totals = append(totals, time.Since(began))
		held = append(held, sum(holds))
		all = append(all, summarize(waits, time.Since(began)))
	}
	total := median(totals, func(d time.Duration) time.Duration { return d })
	holds := median(held, func(d time.Duration) time.Duration { return d })
	return []string{
		s.name, strconv.FormatFloat(total.Seconds(), 'f', 2, 64) + " s", formatRatio(total.Seconds(), idealTime.Seconds()),
		formatRatio(total.Seconds(), holds.Seconds()), formatMillis(holds / (workers * turns)),
		formatMillis(median(all, readP50)), formatMillis(median(all, readP99)),
	}, nil
}

func sum(all []time.Duration) (total time.Duration) {
	for _, d := range all {
		total += d
	}
	return total
}

// holdOnce waits for the path, holds it and releases it. It returns the wait, and how long
// it held the path until it sent the release.
func (c *claimClient) holdOnce() (wait, hold time.Duration, err error) {
	began := time.Now()
	state, err := c.enqueue("one")
	if err == nil && state == "enqueued" {
		err = c.wantState("acquired")
	}
	held := time.Now()
	if err != nil {
		return 0, 0, err
	}
	sleep(holdFor)
	hold = time.Since(held)
	return held.Sub(began), hold, c.release()
}

// sleep sleeps by a timer of the kernel. One of Go is up to a millisecond late, because an
// idle process waits for it in epoll, which counts in milliseconds.
func sleep(d time.Duration) {
	left := syscall.NsecToTimespec(d.Nanoseconds())
	for errors.Is(syscall.Nanosleep(&left, &left), syscall.EINTR) {
	}
}

// measureWaiting fills a namespace with waiting claims. Then the holder of a path releases
// it and queues up anew, at a steady rate.
func measureWaiting(ctx context.Context, b *bench, s *lockService) ([]string, error) {
	began := time.Now()
	clients, err := dialClaimClients(ctx, s.locktopus, "waiting", b.claims/claimPaths*claimPaths+claimPaths)
	if err != nil {
		return nil, err
	}
	pathOf := func(i int) string { return strconv.Itoa(i % claimPaths) }
	for first := 0; first < len(clients); first += claimPaths { // so that clients of one path wait in order
		if err := inParallel(claimPaths, func(i int) error { _, err := clients[first+i].enqueue(pathOf(i)); return err }); err != nil {
			return nil, err
		}
	}
	stored := time.Since(began)
	runtime.GC() // the load generator's own, which would delay both now; its heap is small
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const steps = int(steadyRate * steadyTime / time.Second)
	enqueues, grants := make([]time.Duration, steps), make([]time.Duration, steps)
	errs := make([]error, steps)
	busy := make([]sync.Mutex, claimPaths)
	tick := time.NewTicker(time.Second / steadyRate)
	defer tick.Stop()
	var wg sync.WaitGroup
	for step := range steps {
		<-tick.C
		wg.Go(func() { // a slow step delays no other path
			path := step % claimPaths
			busy[path].Lock()
			defer busy[path].Unlock()
			holder := clients[step%len(clients)]
			next := clients[(step+claimPaths)%len(clients)]
			enqueues[step], grants[step], errs[step] = handClaimOver(holder, next, pathOf(path))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	memory, err := s.memory()
	if err != nil {
		return nil, err
	}
	e, g := summarize(enqueues, steadyTime), summarize(grants, steadyTime)
	return []string{
		s.name, stored.Round(100 * time.Millisecond).String(), formatMillis(e.percentile(0.5)), formatMillis(e.percentile(0.99)),
		formatMillis(g.percentile(0.5)), formatMillis(g.percentile(0.99)), memory.String(),
	}, nil
}

// handClaimOver lets the holder release the path and queue up anew. It returns how long the
// queueing took, and the time from the sent release to the grant of the next claim.
func handClaimOver(holder, next *claimClient, path string) (enqueue, grant time.Duration, err error) {
	granted := make(chan error, 1)
	began := time.Now()
	var at time.Time
	go func() {
		err := next.wantState("acquired")
		at = time.Now()
		granted <- err
	}()
	if err := holder.release(); err != nil {
		return 0, 0, err
	}
	if err := <-granted; err != nil {
		return 0, 0, err
	}
	grant = at.Sub(began)
	began = time.Now()
	state, err := holder.enqueue(path)
	if err == nil && state != "enqueued" {
		err = fmt.Errorf("the state is %q instead of enqueued", state)
	}
	return time.Since(began), grant, err
}
