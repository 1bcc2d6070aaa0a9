package resourcelocks

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/devpostgres/testserver"
)

// outage is a fault of PostgreSQL that leaves its server running.
type outage struct {
	name string
	// prepare returns the address of a database of its own, and what begins and ends the
	// outage.
	prepare func(t *testing.T) (databaseURL string, begin, end func())
	// refused are the fronts that must refuse a new key meanwhile.
	refused []string
}

var allFronts = []string{"locket", "locktopus", "sunbird", "mutex"}

var outages = []outage{
	{name: "PostgreSQL becomes read-only", prepare: prepareReadOnly, refused: allFronts},
	{name: "tables are away", prepare: prepareLostTables, refused: allFronts},
	// What is deleted makes room for claims, so Locktopus may go on.
	{name: "the disk is full", prepare: prepareFullDisk, refused: []string{"locket", "sunbird", "mutex"}},
	{name: "all sessions are ended", prepare: prepareEndOfSessions},
}

func prepareReadOnly(t *testing.T) (databaseURL string, begin, end func()) {
	t.Helper()
	url := testserver.Start(t, nil).URL()
	return url,
		func() {
			execAll(t, url, `ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`)
		},
		func() { execAll(t, url, `ALTER SYSTEM RESET default_transaction_read_only`, `SELECT pg_reload_conf()`) }
}

func prepareLostTables(t *testing.T) (databaseURL string, begin, end func()) {
	t.Helper()
	url := createDatabase(t)
	rename := func(from, to string) {
		for _, table := range []string{"lock", "claim", "instance"} {
			execAll(t, url, `ALTER TABLE resource_locks.`+table+from+` RENAME TO `+table+to)
		}
	}
	return url, func() { rename("", "_away") }, func() { rename("_away", "") }
}

func prepareFullDisk(t *testing.T) (databaseURL string, begin, end func()) {
	t.Helper()
	disk := testserver.NewSmallDisk(t)
	return disk.URL, func() { disk.Fill(t) }, func() { disk.Free(t) }
}

// prepareEndOfSessions ends all sessions several times, so that it meets calls of each kind.
func prepareEndOfSessions(t *testing.T) (databaseURL string, begin, end func()) {
	t.Helper()
	const times = 20
	url := createDatabase(t)
	return url, func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for range times {
			execAll(t, url, `
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			<-tick.C
		}
	}, func() {}
}

func TestOutages(t *testing.T) {
	t.Parallel()
	for _, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			url, begin, end := o.prepare(t)
			first, second := startChild(t, url), startChild(t, url)
			l := startLoad(t, url, first.addresses, second.addresses)
			for _, long := range []bool{false, true} {
				l.await(t, 10)
				left := takeLeftLocks(t, first.addresses)
				begin()
				o.awaitRefusals(t, second.addresses)
				if long && len(o.refused) == len(allFronts) {
					left.awaitEnd(t)
				}
				end()
				awaitGrants(t, time.Now(), first.addresses, second.addresses)
				left.leave()
				left.check(t, second.addresses)
			}
			l.await(t, 10)
			l.check(t)
			for _, c := range []*child{first, second} {
				select {
				case <-c.exited:
					t.Error("an instance has ended")
				default:
				}
			}
		})
	}
}

// awaitRefusals waits until each front has refused a new key, in the words of its protocol.
func (o outage) awaitRefusals(t *testing.T, at addresses) {
	t.Helper()
	words := map[string]string{
		"locket": "code = (Unavailable|DeadlineExceeded)", "locktopus": "communication error: |bad handshake",
		"sunbird": "ERR_LOCK_CREATION_FAILED", "mutex": "status 50[34]",
	}
	for _, front := range o.refused {
		var err error
		waitUntil(t, front+" refuses", func() bool {
			err = tryKey(t.Context(), at, front)
			return err != nil
		})
		if !errors.Is(err, errAway) || !regexp.MustCompile(words[front]).MatchString(err.Error()) {
			t.Errorf("%s refuses with %v, want %q", front, err, words[front])
		}
	}
}

// awaitGrants waits until each front of each instance grants a new key after an outage.
func awaitGrants(t *testing.T, back time.Time, instances ...addresses) {
	t.Helper()
	var waiting sync.WaitGroup
	for _, front := range allFronts {
		waiting.Go(func() {
			took := make([]time.Duration, len(instances))
			var both sync.WaitGroup
			for i, at := range instances {
				both.Go(func() { took[i] = awaitGrant(t, back, at, front) })
			}
			both.Wait()
			t.Logf("%s grants %s after the outage", front, took)
		})
	}
	waiting.Wait()
}

// awaitGrant returns how long after back a front grants a new key.
func awaitGrant(t *testing.T, back time.Time, at addresses, front string) time.Duration {
	t.Helper()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := tryKey(t.Context(), at, front)
		took := time.Since(back).Round(time.Millisecond)
		if err != nil && took > patience {
			t.Errorf("%s: %v", front, err)
		}
		if err == nil || took > patience {
			return took
		}
		<-tick.C
	}
}

// tryKey takes a new key, and releases it if it can.
func tryKey(ctx context.Context, at addresses, front string) error {
	for _, p := range protocols {
		if p.name == front {
			h, err := p.acquire(ctx, at, "new-"+uuid.NewString(), "owner")
			if err == nil {
				h.leave()
			}
			return err
		}
	}
	return errors.New("there is no front " + front)
}

// awaitEnd waits until the web sockets have ended, because their instance lost its lease.
func (locks leftLocks) awaitEnd(t *testing.T) {
	t.Helper()
	for _, l := range locks {
		waitUntil(t, "the end of "+l.name, func() bool { return !l.ends().IsZero() && time.Now().After(l.ends()) })
	}
}
