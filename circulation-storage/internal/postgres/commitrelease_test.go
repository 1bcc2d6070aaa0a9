package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

func TestCheckOut_ReleasesTheLock(t *testing.T) {
	t.Parallel()
	t.Run("with the loan", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		c := l.withLock(uuid.New(), l.addItem("Available", ""))
		c.release = true
		result, _, err := l.send(c)
		if err != nil || !result.LockReleased || l.count(countLocks) != 0 {
			t.Errorf("got %+v %v, want the lock released", result, err)
		}
		if result, outcome, err := l.send(c); err != nil || outcome != commit.Repeated || result.LockReleased {
			t.Errorf("the repeat got %+v %s %v, want the loan and no release", result, outcome, err)
		}
	})
	t.Run("not with a refusal", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		c := l.withLock(uuid.New(), l.addItem("Available", ""))
		c.release = true
		l.exec(`UPDATE {schema}.item SET jsonb = jsonb_set(jsonb, '{_version}', '9')`)
		if _, _, err := l.send(c); !fault.Is(err, fault.ItemChanged) || l.count(countLocks) != 1 {
			t.Errorf("got %v, want ItemChanged and the lock", err)
		}
	})
	t.Run("only if it is asked for", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		c := l.withLock(uuid.New(), l.addItem("Available", ""))
		if result, _, err := l.send(c); err != nil || result.LockReleased || l.count(countLocks) != 1 {
			t.Errorf("got %+v %v, want the lock as it was", result, err)
		}
	})
}
