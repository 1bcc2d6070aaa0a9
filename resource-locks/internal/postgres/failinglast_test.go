package postgres

import (
	"slices"
	"testing"
	"time"
)

// Each namespace that another process holds costs a settling some time.
func TestFailingLast_Order(t *testing.T) {
	t.Parallel()
	f, now := failingLast{failed: map[string]failedSettling{}}, time.Now()
	for name, ago := range map[string]time.Duration{"just now": 0, "lately": 2, "before": 3, "without work": 4} {
		f.failed[name] = failedSettling{at: now.Add(-ago * settleRetry)}
	}
	due := map[string]*dueWork{"just now": {}, "lately": {}, "before": {}, "never": {}}
	if got, want := f.order(due), []string{"never", "before", "lately"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, kept := f.failed["without work"]; kept || len(f.failed) != 3 {
		t.Errorf("it remembers %v, want what has work alone", f.failed)
	}
}
