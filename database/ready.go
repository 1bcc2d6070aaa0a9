package database

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ReadyTimeout bounds one check of the server, so that it answers a probe before the
// probe gives up.
const ReadyTimeout = 3 * time.Second

// ErrReadOnly means that the server refuses writes.
var ErrReadOnly = errors.New("the database is read-only (a standby?)")

// Await waits until ready returns nil, for patience at most; 0 does not wait. It does not
// wait after errors that waiting does not mend, such as a wrong password or an unknown
// database. It returns the last error of ready.
func (db *DB) Await(ctx context.Context, patience time.Duration, ready func(context.Context) error) error {
	err := ready(ctx)
	if err == nil || patience == 0 || isPermanent(err) {
		return err
	}
	db.log.InfoContext(ctx, "waiting for the database", "for", patience.String(), "err", err)
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(awaitInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("%w (waited for %s)", err, patience)
		case <-tick.C:
		}
		err = ready(ctx)
		if err == nil || isPermanent(err) {
			return err
		}
	}
}

const awaitInterval = 500 * time.Millisecond

// isPermanent reports whether the server refused this user, password or database.
func isPermanent(err error) bool {
	code, _ := SQLState(err)
	const invalidAuthorization, unknownDatabase = "28", "3D000"
	return strings.HasPrefix(code, invalidAuthorization) || code == unknownDatabase
}
