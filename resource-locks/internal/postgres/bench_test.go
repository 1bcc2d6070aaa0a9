package postgres_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

// runWorkers runs b.N calls in so many goroutines.
func runWorkers(b *testing.B, workers int, call func(worker, n int) error) {
	b.Helper()
	var next atomic.Int64
	var running sync.WaitGroup
	b.ResetTimer()
	for w := range workers {
		running.Go(func() {
			for {
				n := int(next.Add(1))
				if n > b.N {
					return
				}
				if err := call(w, n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// fillLocks stores live locks of other keys.
func fillLocks(b *testing.B, s *schematest.Schema, db *postgres.DB, rows int) {
	b.Helper()
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO %s.lock (id, fence, granted_at, renewed_at, expires_at, sweep_after, replaced, namespace,
			name, owner, kind, value)
			SELECT gen_random_uuid(), 1, now(), now(), now() + '1 hour', now() + n * '1 ms'::interval + '1 hour', false,
			'locket', md5(n::text), 'owner', 'lock', '{}'
			  FROM generate_series(1, %d) n`, s.Name, rows),
		`VACUUM ANALYZE ` + s.Name + `.lock`,
	} {
		if _, err := db.Pool().Exec(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLockStore(b *testing.B) {
	for _, rows := range []int{0, 1_000_000} {
		s := schematest.New(b)
		db := s.OpenAlone(32)
		fillLocks(b, s, db, rows)
		store := postgres.NewLockStore(db)
		for _, workers := range []int{1, 8, 64} {
			benchmarkLocks(b, store, fmt.Sprintf("rows=%d/workers=%d", rows, workers), workers)
		}
	}
}

// benchmarkLocks measures each operation on keys of its own.
func benchmarkLocks(b *testing.B, store *postgres.LockStore, name string, workers int) {
	b.Helper()
	acquire := func(key, owner string, want engine.Outcome) error {
		g, err := store.Acquire(b.Context(), engine.Acquire{
			Key: engine.Key{Namespace: "locket", Name: key}, Owner: owner, Kind: "lock", Value: "{}", TTL: time.Minute,
		})
		if err == nil && g.Outcome != want {
			return fmt.Errorf("%s, want %s", g.Outcome, want)
		}
		return err
	}
	b.Run(name+"/acquire and release", func(b *testing.B) {
		run := uuid.NewString()
		runWorkers(b, workers, func(_, n int) error {
			key := fmt.Sprint(run, n)
			if err := acquire(key, "ann", engine.Granted); err != nil {
				return err
			}
			_, err := store.Release(b.Context(), engine.Key{Namespace: "locket", Name: key}, "ann")
			return err
		})
	})
	for operation, want := range map[string]engine.Outcome{"renew": engine.Renewed, "refuse": engine.Held} {
		b.Run(name+"/"+operation, func(b *testing.B) {
			run := uuid.NewString()
			for w := range workers {
				if err := acquire(fmt.Sprint(run, w), "ann", engine.Granted); err != nil {
					b.Fatal(err)
				}
			}
			owner := map[string]string{"renew": "ann", "refuse": "bob"}[operation]
			runWorkers(b, workers, func(w, _ int) error { return acquire(fmt.Sprint(run, w), owner, want) })
		})
	}
}

// newClaims returns a claim store with a lease that outlives the benchmark.
func newClaims(b *testing.B) (*postgres.ClaimStore, func(paths ...string) engine.Claim) {
	b.Helper()
	store := postgres.NewClaimStore(schematest.New(b).OpenAlone(64))
	instance := uuid.New()
	if err := store.StartLease(b.Context(), instance, time.Hour); err != nil {
		b.Fatal(err)
	}
	return store, func(path ...string) engine.Claim {
		return engine.Claim{
			ID: uuid.New(), Namespace: "ns", Instance: instance, Abandon: time.Minute,
			Resources: []engine.Resource{{Path: path, Write: true}},
		}
	}
}

// BenchmarkClaimStore_Waiting measures a claim that is held and withdrawn beside 10,000 that
// wait, at a steady rate. The first claims wait for one path, the others in pairs.
func BenchmarkClaimStore_Waiting(b *testing.B) {
	for _, layout := range []string{"one path", "many paths"} {
		b.Run(layout, func(b *testing.B) {
			store, claim := newClaims(b)
			fill(b, store, claim, layout)
			var mu sync.Mutex
			times := map[string][]time.Duration{}
			measure := func(op string, f func() error) {
				began := time.Now()
				if err := f(); err != nil {
					b.Error(err)
				}
				mu.Lock()
				times[op] = append(times[op], time.Since(began))
				mu.Unlock()
			}
			tick := time.NewTicker(time.Second / 200)
			defer tick.Stop()
			var running sync.WaitGroup
			b.ResetTimer()
			for n := range b.N {
				<-tick.C
				path := []string{"busy", fmt.Sprint(n % 4)}
				running.Go(func() {
					q := claim(path...)
					measure("enqueue", func() error { _, err := store.Enqueue(b.Context(), q); return err })
					measure("withdraw", func() error { _, err := store.Withdraw(b.Context(), q.Instance, "ns", q.ID); return err })
				})
			}
			running.Wait()
			b.StopTimer()
			for op, all := range times {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds()), op+"-p50-us")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), op+"-p99-us")
			}
		})
	}
}

func fill(b *testing.B, store *postgres.ClaimStore, claim func(...string) engine.Claim, layout string) {
	b.Helper()
	var running sync.WaitGroup
	for w := range 8 {
		running.Go(func() {
			for n := range 10_000 / 8 {
				path := []string{"one"}
				if layout == "many paths" {
					path = []string{"many", fmt.Sprint(w, n/2)}
				}
				if _, err := store.Enqueue(b.Context(), claim(path...)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

// BenchmarkClaimStore_Release measures the grant of the next of 10,000 that wait for one
// path.
func BenchmarkClaimStore_Release(b *testing.B) {
	store, claim := newClaims(b)
	fill(b, store, claim, "one path")
	all, err := store.ListClaims(b.Context(), "", 1<<30)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for n := range b.N {
		if n >= len(all)-1 {
			b.Fatal("use a shorter -benchtime")
		}
		granted, err := store.Withdraw(b.Context(), all[n].Instance, "ns", all[n].ID)
		if err != nil || len(granted) != 1 {
			b.Fatalf("granted %v, %v, want the next one", granted, err)
		}
	}
}

// BenchmarkClaims_HandOver has 16 workers that hold one path for 5 ms each.
func BenchmarkClaims_HandOver(b *testing.B) {
	const held = 5 * time.Millisecond
	claims := startClaims(b, schematest.New(b))
	runWorkers(b, 16, func(int, int) error {
		ticket, err := claims.Lock(b.Context(), "ns", "worker", 0, []engine.Resource{{Path: []string{"x"}, Write: true}})
		if err != nil {
			return err
		}
		<-ticket.Held()
		<-time.After(held)
		return claims.Release(b.Context(), ticket)
	})
	b.ReportMetric(b.Elapsed().Seconds()/(float64(b.N)*held.Seconds()), "of-ideal")
}
