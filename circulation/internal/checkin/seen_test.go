package checkin_test

import (
	"testing"

	"checkoutlock/schemas/fault"
)

// A caller that has judged the item judges it again when it has changed.
func TestCheckIn_OfAnItemThatTheCallerJudged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		behind  int // the version that the caller saw
		answers []error
		want    fault.Code
		commits int
	}{
		"as it is":                {commits: 1},
		"before it changed":       {behind: 1, want: fault.ItemChanged},
		"which changes meanwhile": {answers: []error{errChanged}, want: fault.ItemChanged, commits: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, req := newBackend(), newReturn()
			d.answers, req.Seen = tt.answers, new(d.Book.Version-tt.behind)
			if _, err := d.checkIn(t, req); fault.CodeOf(err) != tt.want || len(d.checkIns) != tt.commits {
				t.Errorf("got %v after %d commits, want %q after %d", err, len(d.checkIns), tt.want, tt.commits)
			}
		})
	}
}
