package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

func TestCountOpenLoans_WithALock(t *testing.T) {
	t.Parallel()
	l := newDesk(t)
	user, other := uuid.New(), uuid.New()
	l.addLoan(user, "Open", "Checked out", "")
	held := l.lock(user)
	others := l.lock(other)
	released := l.lock(uuid.New())
	if _, err := l.locks.Release(l.ctx(), released); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		lock uuid.UUID
		want fault.Code
	}{
		{name: "counts without a lock", lock: uuid.Nil},
		{name: "counts under the patron's lock", lock: held},
		{name: "refuses another patron's lock", lock: others, want: fault.LockLost},
		{name: "refuses a lock that is gone", lock: released, want: fault.LockLost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := l.commits.CountOpenLoans(l.ctx(), commit.OpenLoans{UserID: user, LockID: tt.lock})
			if fault.CodeOf(err) != tt.want || err == nil && n != 1 {
				t.Errorf("counted %d, %v, want 1 or %q", n, err, tt.want)
			}
		})
	}
}
