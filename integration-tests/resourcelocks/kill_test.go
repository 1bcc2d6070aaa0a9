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

const (
	// leaseLength is how long the claims of a killed instance stay before their abandon
	// time-out begins.
	leaseLength = 3 * time.Second
	// slack is how long after its deadline a lock may stay, on a busy machine too.
	slack = 5 * time.Second
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
	left.check(t, second.addresses, time.Now())
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
		waitUntil(t, "the service is ready", func() bool {
			status, _, err := call(t.Context(), http.MethodGet, instances[1]["operators"]+"/admin/health/ready", "")
			return err == nil && status == http.StatusOK
		})
		left.check(t, instances[1], time.Now())
		takers.check(t, l.service)
	}
	l.await(t, 10)
	l.check(t)
}

// leftLocks are locks, one of each front, that their owners do not release.
type leftLocks []leftLock

type leftLock struct {
	protocol
	*hold
	key   string
	taken time.Time // when the grant was answered
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
		locks[i] = leftLock{p, h, key, time.Now()}
	}
	return locks
}

// leave ends the owners.
func (locks leftLocks) leave() {
	for _, l := range locks {
		l.leave()
	}
}

// check fails the test unless other owners get each lock after its deadline, and soon after
// it. back is when the service could work anew.
func (locks leftLocks) check(t *testing.T, at addresses, back time.Time) {
	t.Helper()
	var checks sync.WaitGroup
	for _, l := range locks {
		checks.Go(func() {
			next, err := l.acquireNext(t.Context(), at)
			if err != nil {
				t.Errorf("%s: no other owner got the lock: %v", l.name, err)
				return
			}
			l.judge(t, time.Now(), back)
			if err := next.release(t.Context()); err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
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

// judge fails the test if the next owner got the lock too early or too late.
func (l leftLock) judge(t *testing.T, got, back time.Time) {
	t.Helper()
	latest := l.taken.Add(lockTTL)
	if l.name == "locktopus" {
		latest = back.Add(leaseLength + abandonTimeout)
	}
	if latest.Before(back) {
		latest = back
	}
	t.Logf("%s: the next owner got the lock %s after its deadline", l.name, got.Sub(l.ends()).Round(time.Millisecond))
	if ends := l.ends(); ends.IsZero() || got.Before(ends) {
		t.Errorf("%s: the next owner got the lock at %s, before the deadline %s", l.name, got, ends)
	}
	if got.After(latest.Add(slack)) {
		t.Errorf("%s: the next owner got the lock %s late", l.name, got.Sub(latest))
	}
}
