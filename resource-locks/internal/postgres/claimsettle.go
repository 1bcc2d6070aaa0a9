package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/resource-locks/internal/engine"
)

const (
	// endLeasesSQL waits for a KeepLease that is under way, and judges the lease anew then.
	endLeasesSQL = `
UPDATE {schema}.instance i SET ended_at = i.lease_until WHERE i.ended_at IS NULL AND i.lease_until <= clock_timestamp()`

	// The next statements repair dates that were written before the clock was set back, and lie
	// too far in the future. The times count anew, so that the dead end, and a lease that is
	// kept goes on.
	repairLeasesSQL = `
UPDATE {schema}.instance i SET lease_until = clock_timestamp() + i.lease
 WHERE i.ended_at IS NULL AND i.lease_until > clock_timestamp() + 2 * i.lease`

	repairEndsSQL = `
UPDATE {schema}.instance i SET ended_at = clock_timestamp() WHERE i.ended_at > clock_timestamp() + interval '5 s'`

	repairClaimsSQL = `
UPDATE {schema}.claim c SET ends_at = clock_timestamp() + c.abandon
 WHERE c.ends_at > clock_timestamp() + interval '5 s' AND c.ends_at > clock_timestamp() + c.abandon + interval '5 s'`

	// findDueSQL lists the claims that have ended, and a row without one for each namespace
	// whose claims are to be placed. The latest come first: an ended claim that waits goes
	// before the one that it waits for, and is never granted. OFFSET makes the planner look up the
	// claims of one ended instance after the other. Otherwise it would read all claims.
	findDueSQL = `
SELECT c.namespace, c.id, c.number, c.prefixes FROM {schema}.claim c WHERE c.ends_at <= clock_timestamp()
UNION ALL
SELECT c.namespace, c.id, c.number, c.prefixes
  FROM {schema}.instance i CROSS JOIN LATERAL (SELECT * FROM {schema}.claim c WHERE c.instance = i.id OFFSET 0) c WHERE ` + leaseOver + `
UNION ALL
SELECT DISTINCT r.namespace, NULL::uuid, 0, 0 FROM {schema}.removed_claim r
 ORDER BY number DESC`
)

const (
	// settleWait is how long Settle waits for a namespace, and for a connection.
	settleWait = 300 * time.Millisecond
	// settleRetry is how long Settle leaves out a namespace that it could not settle.
	settleRetry = time.Second
	// settleRound is how long Settle begins with further namespaces. Its caller wakes those that it
	// granted, and looks for other grants, only after it.
	settleRound = 250 * time.Millisecond
	// repairInterval is how often Settle repairs dates, because it reads all future ones.
	repairInterval = time.Second
)

// dueWork is what one transaction does for a namespace.
type dueWork struct {
	ended    []uuid.UUID
	prefixes int  // of the ended claims
	more     bool // further claims have ended
	left     bool // claims are to be placed
}

// add adds an ended claim if it fits.
func (w *dueWork) add(id uuid.UUID, prefixes, atOnce int) {
	if len(w.ended) > 0 && (len(w.ended) == atOnce || w.prefixes+prefixes > engine.MaxPrefixes) {
		w.more = true
	}
	if !w.more {
		w.ended, w.prefixes = append(w.ended, id), w.prefixes+prefixes
	}
}

// Settle implements engine.ClaimStore. It is one round trip if there is nothing to do.
// Otherwise it is one transaction for each namespace. One that fails stops no other, and fails each call
// until it succeeds. After settleRound the next call goes on.
func (s *ClaimStore) Settle(ctx context.Context, caller uuid.UUID) (granted []uuid.UUID, ended []engine.ClaimInfo, err error) {
	due, err := s.listDue(ctx)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	began := time.Now()
	for i, namespace := range s.failing.order(due) {
		if i > 0 && time.Since(began) > settleRound {
			break
		}
		if err := ctx.Err(); err != nil {
			errs = append(errs, fmt.Errorf("settling claims: %w", err))
			break
		}
		m, err := s.settleNamespace(ctx, caller, namespace, due[namespace])
		s.failing.note(namespace, err)
		granted, ended, errs = append(granted, m.granted...), append(ended, m.removed...), append(errs, err)
	}
	return granted, ended, cmp.Or(errors.Join(errs...), s.failing.find())
}

// settleNamespace removes ended claims. It places claims after the last ended one is gone.
func (s *ClaimStore) settleNamespace(ctx context.Context, caller uuid.UUID, namespace string, due *dueWork) (moved, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	var removed, placed moved
	b := s.newBatch(namespace, false, settleWait)
	if len(due.ended) > 0 {
		b.moveClaims(&removed, s.removeEndedSQL, namespace, caller, joinIDs(due.ended))
	}
	if due.left && !due.more {
		b.moveClaims(&placed, s.placeLeftSQL, namespace, caller)
	}
	if err := b.send(ctx, fmt.Sprintf("settling the claims of %q", namespace)); err != nil {
		return moved{}, err
	}
	removed.granted = append(removed.granted, placed.granted...)
	return removed, nil
}

// listDue ends leases whose time is over, and returns what is to be done, by namespace.
func (s *ClaimStore) listDue(ctx context.Context) (map[string]*dueWork, error) {
	var due map[string]*dueWork
	var batch pgx.Batch
	batch.Queue(claimBounds)
	s.repairing.Do(func() {
		for _, repair := range [...]string{repairLeasesSQL, repairEndsSQL, repairClaimsSQL} {
			batch.Queue(repair)
		}
	})
	batch.Queue(endLeasesSQL)
	batch.Queue(findDueSQL).Query(func(rows pgx.Rows) error {
		due = map[string]*dueWork{}
		var namespace string
		var id uuid.NullUUID
		var prefixes int
		_, err := pgx.ForEachRow(rows, []any{&namespace, &id, nil, &prefixes}, func() error {
			if due[namespace] == nil {
				due[namespace] = &dueWork{}
			}
			if id.Valid {
				due[namespace].add(id.UUID, prefixes, s.atOnce)
			} else {
				due[namespace].left = true
			}
			return nil
		})
		return err
	})
	err := s.db.write(ctx, s.db.unreserved, "looking for ended claims", func(ctx context.Context, conn *pgxpool.Conn) error {
		return s.db.sendBatch(ctx, conn, &batch)
	})
	return due, err
}

// failingLast remembers which namespaces could not be settled.
type failingLast struct {
	mu     sync.Mutex
	failed map[string]failedSettling
}

type failedSettling struct {
	at  time.Time
	err error
}

// order returns the namespaces, those that failed last, and leaves out those that failed
// just now: each costs settleWait. It forgets those without work.
func (f *failingLast) order(due map[string]*dueWork) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.failed, func(namespace string, _ failedSettling) bool { return due[namespace] == nil })
	names := slices.DeleteFunc(slices.Collect(maps.Keys(due)), func(n string) bool { return time.Since(f.failed[n].at) < settleRetry })
	slices.SortFunc(names, func(a, b string) int { return f.failed[a].at.Compare(f.failed[b].at) })
	return names
}

func (f *failingLast) note(namespace string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.failed, namespace)
		return
	}
	f.failed[namespace] = failedSettling{time.Now(), err}
}

// find returns the error of a namespace that is not settled since, nil without one.
func (f *failingLast) find() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, last := range f.failed {
		return last.err
	}
	return nil
}
