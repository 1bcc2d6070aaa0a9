package resourcelocks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	ownersPerFront = 4
	keysPerFront   = 2
	// pause is between two tries of an owner, or two looks at a condition. Without it, the owners
	// would take the machine from the service.
	pause = 20 * time.Millisecond
)

// load is owners that take, hold and release locks through all fronts.
type load struct {
	log     holdLog
	service *pgxpool.Pool // the database of the service
	cancel  func()
	owners  sync.WaitGroup

	mu        sync.Mutex
	instances []addresses
	defects   map[string]int // answers that no front may give
}

// startLoad runs owners until stop is called.
func startLoad(t *testing.T, serviceURL string, instances ...addresses) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{
		log: newHoldLog(t), service: openDatabase(t, serviceURL), cancel: cancel, defects: map[string]int{},
		instances: instances,
	}
	for _, p := range waitingProtocols {
		for i := range ownersPerFront {
			l.owners.Go(func() { l.run(ctx, p, fmt.Sprintf("%s-%d", p.name, i%keysPerFront)) })
		}
	}
	t.Cleanup(l.stop)
	return l
}

// stop ends all owners. Repeated calls have no effect.
func (l *load) stop() {
	l.cancel()
	l.owners.Wait()
}

// use sets the instances that owners ask.
func (l *load) use(instances ...addresses) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.instances = instances
}

func (l *load) pick() addresses {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.instances[rand.IntN(len(l.instances))]
}

func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.defects[err.Error()]++
}

// run is one owner. Each lock has another owner's name, so that no lock is a renewal.
func (l *load) run(ctx context.Context, p protocol, key string) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if err := l.holdOnce(ctx, p, key); err != nil && ctx.Err() == nil {
			l.note(fmt.Errorf("%s: %w", p.name, err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// holdOnce takes a lock, writes its begin and its end, and releases it.
func (l *load) holdOnce(ctx context.Context, p protocol, key string) error {
	owner := uuid.NewString()
	h, err := p.acquire(ctx, l.pick(), key, owner)
	switch {
	case isOrdinary(err):
		return nil
	case err != nil:
		return err
	}
	defer h.leave()
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if h.fence == 0 {
		h.fence = l.readFence(work, key, owner)
	}
	id, err := l.log.begin(work, p.name, key, h.fence)
	if err != nil {
		return err
	}
	if err := l.log.end(work, id, h.ends()); err != nil {
		return err
	}
	_ = h.release(work) // it fails while the service is away; the lock then ends by itself
	return nil
}

// readFence returns the fence of an owner's lock, or 0 if PostgreSQL is away.
func (l *load) readFence(ctx context.Context, key, owner string) (fence int64) {
	ctx, cancel := context.WithTimeout(ctx, lockTTL/2)
	defer cancel()
	err := l.service.QueryRow(ctx, `SELECT fence FROM resource_locks.lock WHERE name = $1 AND owner = $2`, key,
		owner).Scan(&fence)
	if err != nil {
		return 0
	}
	return fence
}

// await waits until each front has n more holds than now.
func (l *load) await(t *testing.T, n int) {
	t.Helper()
	before := map[string]int{}
	for _, p := range waitingProtocols {
		before[p.name], _ = l.log.count(t.Context(), t, p.name)
	}
	for _, p := range waitingProtocols {
		waitUntil(t, fmt.Sprintf("%d more holds of %s", n, p.name), func() bool {
			holds, _ := l.log.count(t.Context(), t, p.name)
			return holds >= before[p.name]+n
		})
	}
}

// check stops the owners and judges what they wrote.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.stop()
	l.log.check(t.Context(), t)
	for _, p := range waitingProtocols {
		holds, fenced := l.log.count(t.Context(), t, p.name)
		t.Logf("%s: %d holds, %d with a fence", p.name, holds, fenced)
		if fenced < holds/2 {
			t.Errorf("%s: only %d of %d holds have a fence", p.name, fenced, holds)
		}
	}
	for text, n := range l.defects {
		t.Errorf("%d times: %s", n, text)
	}
}

// waitUntil waits until f is true.
func waitUntil(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		<-tick.C
	}
}
