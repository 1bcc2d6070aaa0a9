package resourcelocks

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// holdLog is where holders write when they hold. It is on a server that the tests do not
// kill. All clocks are those of this host.
type holdLog struct{ pool *pgxpool.Pool }

func newHoldLog(t *testing.T) holdLog {
	t.Helper()
	l := holdLog{openDatabase(t, createDatabase(t))}
	_, err := l.pool.Exec(t.Context(), `
CREATE TABLE hold (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    front text NOT NULL,
    key   text NOT NULL,
    fence bigint, -- NULL if the service was away when the holder asked
    began timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended timestamptz, -- written before the release is sent
    ends  timestamptz -- the holder's deadline
)`)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// begin writes that a holder begins. A fence of 0 is unknown.
func (l holdLog) begin(ctx context.Context, front, key string, fence int64) (id int64, err error) {
	err = l.pool.QueryRow(ctx, `INSERT INTO hold (front, key, fence) VALUES ($1, $2, nullif($3::bigint, 0)) RETURNING id`,
		front, key, fence).Scan(&id)
	return id, err
}

// end writes that a holder ends, and its deadline.
func (l holdLog) end(ctx context.Context, id int64, ends time.Time) error {
	var deadline *time.Time
	if !ends.IsZero() {
		deadline = &ends
	}
	_, err := l.pool.Exec(ctx, `UPDATE hold SET ended = clock_timestamp(), ends = $2 WHERE id = $1`, id, deadline)
	return err
}

// count returns the holds of a front, and how many have a fence.
func (l holdLog) count(ctx context.Context, t *testing.T, front string) (holds, fenced int) {
	t.Helper()
	if err := l.pool.QueryRow(ctx, `SELECT count(*), count(fence) FROM hold WHERE front = $1`, front).Scan(&holds,
		&fenced); err != nil {
		t.Error(err)
	}
	return holds, fenced
}

// check fails the test if two held a key at once, or if a fence did not grow. A hold that ended
// before it was written, as its holder was slow, is none: the next holder may be written before it.
func (l holdLog) check(ctx context.Context, t *testing.T) {
	t.Helper()
	for what, faults := range map[string]string{
		"two held a key at once": `
SELECT format('%s and %s', a, b) FROM hold a JOIN hold b ON b.front = a.front AND b.key = a.key AND b.id > a.id
 WHERE tstzrange(a.began, greatest(a.began, least(a.ended, a.ends)))
    && tstzrange(b.began, greatest(b.began, least(b.ended, b.ends)))`,
		"a fence did not grow": `
SELECT format('%s after %s', f, former) FROM (
    SELECT h AS f, fence, lag(h) OVER w AS former, lag(fence) OVER w AS former_fence
      FROM hold h WHERE fence IS NOT NULL AND (ends > began) IS NOT FALSE
    WINDOW w AS (PARTITION BY front, key ORDER BY began)) f
 WHERE fence <= former_fence`,
	} {
		rows, err := l.pool.Query(ctx, faults)
		if err != nil {
			t.Errorf("asking whether %s: %v", what, err)
			continue
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(found) > 0 {
			t.Errorf("%s: %q, %v", what, found, err)
		}
	}
}
