package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/integration-tests/mutualtls"
)

// liveLocksSQL stores locks that live for a day more, in namespaces of several fronts.
const liveLocksSQL = `
INSERT INTO resource_locks.lock (id, fence, granted_at, renewed_at, expires_at, sweep_after, replaced, namespace, name, owner, kind, value)
SELECT gen_random_uuid(), nextval('resource_locks.lock_fence'), now(), now(), now() + interval '1 day' + n % 1000 * interval '1 minute',
       date_trunc('minute', now()) + interval '1 day' + n % 1000 * interval '1 minute', false, 'locket', 'live-' || n, 'owner-' || n, 'lock', 'value'
  FROM generate_series(1, $1::int) n`

// measureLiveLocks compares acquire, renew and release between an empty table and one
// with many live locks.
func measureLiveLocks(ctx context.Context, b *bench) (err error) {
	certs, err := mutualtls.WriteFiles(b.dir)
	if err != nil {
		return err
	}
	var services []*lockService
	defer func() { err = errors.Join(err, stopLockServices(services)) }()
	for range 2 {
		s, err := startResourceLocks(ctx, b, b.builds[0], certs)
		services = append(services, s)
		if err != nil {
			return err
		}
	}
	if err := fillLocks(ctx, services[1].databaseURL, b.locks); err != nil {
		return err
	}
	all := [2][3][]time.Duration{}
	for repetition := range b.repetitions {
		for i, s := range services {
			if err := driveSteps(ctx, b, s, certs, repetition, &all[i]); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"p50 of one client", "empty table", strconv.Itoa(b.locks) + " live locks", "of the empty table"}}
	for step, name := range []string{"acquire", "renew", "release"} {
		empty := summarize(all[0][step], time.Second).percentile(0.5)
		full := summarize(all[1][step], time.Second).percentile(0.5)
		rows = append(rows, []string{name, formatMillis(empty), formatMillis(full), formatRatio(full.Seconds(), empty.Seconds())})
	}
	b.report.table(rows)
	return nil
}

func fillLocks(ctx context.Context, databaseURL string, n int) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, liveLocksSQL, n); err != nil {
		return err
	}
	for _, statement := range []string{"VACUUM ANALYZE resource_locks.lock", "CHECKPOINT"} { // neither runs while it is measured
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// driveSteps lets one client acquire, renew and release keys, one after the other.
func driveSteps(ctx context.Context, b *bench, s *lockService, certs *mutualtls.Files, repetition int, latencies *[3][]time.Duration) error {
	c, err := dialLocket(s.locket, certs.Client)
	if err != nil {
		return err
	}
	defer closeLockets([]*locketClient{c})
	_, err = drive(ctx, 1, b.slice, func(ctx context.Context, _, turn int) error {
		name := fmt.Sprintf("step-%d-%d", repetition, turn)
		acquire := func() error { return mustHold(c.lock(ctx, name, name, locketTTL)) }
		release := func() error { return c.release(ctx, name, name) }
		for i, step := range []func() error{acquire, acquire, release} {
			began := time.Now()
			if err := step(); err != nil {
				return err
			}
			latencies[i] = append(latencies[i], time.Since(began))
		}
		return nil
	})
	return err
}
