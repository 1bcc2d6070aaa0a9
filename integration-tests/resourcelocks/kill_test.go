package resourcelocks

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/devpostgres/testserver"
)

func TestKill_OfTheService(t *testing.T) {
	t.Parallel()
	database := createDatabase(t)
	first, second := startChild(t, database), startChild(t, database)
	l := startLoad(t, database, first.addresses, second.addresses)
	l.await(t, 10)
	left := takeLeftLocks(t, first.addresses)
	first.kill()
	l.use(second.addresses)
	left.check(t, second.addresses)
	l.await(t, 10)

	third := startChild(t, database)
	l.use(second.addresses, third.addresses)
	l.await(t, 10)
	second.kill()
	l.use(third.addresses)
	l.await(t, 10)
	l.check(t)
}

func TestKill_OfPostgreSQL(t *testing.T) {
	t.Parallel()
	pg := testserver.Start(t, nil)
	instances := []addresses{startInstance(t, pg.URL()), startInstance(t, pg.URL())}
	l := startLoad(t, pg.URL(), instances...)
	for range 2 {
		l.await(t, 10)
		left := takeLeftLocks(t, instances[0])
		takers := startTakers(t, instances[0])
		if err := pg.Kill(); err != nil {
			t.Fatal(err)
		}
		takers.stop()
		left.leave()
		if err := pg.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "the service is ready", func() bool { return isReady(t, instances[1]) })
		left.check(t, instances[1])
		takers.check(t, l.service)
	}
	l.await(t, 10)
	l.check(t)
}

func isReady(t *testing.T, instance addresses) bool {
	t.Helper()
	status, _, err := call(t.Context(), http.MethodGet, instance["operators"]+"/admin/health/ready", "")
	return err == nil && status == http.StatusOK
}

// leftLocks are locks, one of each front, that their owners do not release.
type leftLocks []leftLock

type leftLock struct {
	protocol
	*hold
	key string
}

func takeLeftLocks(t *testing.T, at addresses) leftLocks {
	t.Helper()
	locks := make(leftLocks, len(waitingProtocols))
	for i, p := range waitingProtocols {
		key := "left-" + uuid.NewString()
		h, err := p.acquire(t.Context(), at, key, "leaver")
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		t.Cleanup(h.leave)
		locks[i] = leftLock{p, h, key}
	}
	return locks
}

// leave ends the owners.
func (locks leftLocks) leave() {
	for _, l := range locks {
		l.leave()
	}
}

// check fails the test unless other owners get each lock, and only after its deadline.
func (locks leftLocks) check(t *testing.T, at addresses) {
	t.Helper()
	var checks sync.WaitGroup
	for _, l := range locks {
		checks.Go(func() {
			next, err := l.acquireNext(t.Context(), at)
			if err != nil {
				t.Errorf("%s: no other owner got the lock: %v", l.name, err)
				return
			}
			l.judge(t, time.Now())
			_ = next.release(t.Context()) // on a slow host, its time may be over
		})
	}
	checks.Wait()
}

// acquireNext tries until another owner has the lock.
func (l leftLock) acquireNext(ctx context.Context, at addresses) (*hold, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		next, err := l.acquire(ctx, at, l.key, "next")
		if !isOrdinary(err) {
			return next, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

// judge fails the test if the next owner got the lock too early.
func (l leftLock) judge(t *testing.T, got time.Time) {
	t.Helper()
	t.Logf("%s: the next owner got the lock %s after its deadline", l.name, got.Sub(l.ends()).Round(time.Millisecond))
	if ends := l.ends(); ends.IsZero() || got.Before(ends) {
		t.Errorf("%s: the next owner got the lock at %s, before the deadline %s", l.name, got, ends)
	}
}
