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

// errIsolation means that statements through PgBouncer have another isolation level.
var errIsolation = errors.New("the database's isolation level must be READ COMMITTED")

const readOnly = "read-only"

// ModeSQL is an expression for JudgeMode.
const ModeSQL = `CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN '` + readOnly + `'
     ELSE current_setting('transaction_isolation') END`

// JudgeMode returns why the server cannot be used, by the value of ModeSQL. Its text is safe
// to show. It drops the connections to a server that is read-only, because new ones may lead
// to the new primary. A server that lacks space, memory or a working disk cannot be used either,
// until a probe has written something.
func (db *DB) JudgeMode(mode string) error {
	switch mode {
	case readCommitted:
		if lack := db.lack.current(); lack != "" {
			return errors.New(lack)
		}
		return nil
	case readOnly:
		db.Reset()
		return ErrReadOnly
	}
	return fmt.Errorf("%w, and is %s: ALTER ROLE ... SET %s = '%s' for the user of DATABASE_URL, then RECONNECT in PgBouncer",
		errIsolation, strings.ToUpper(mode), isolationSetting, readCommitted)
}

// Await waits until ready returns nil, for patience at most; 0 does not wait. It does not
// wait after errors that waiting does not mend, such as a wrong password, an unknown
// database or another isolation level. It returns the last error of ready.
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

// isPermanent reports whether the server refused this user, password or database, or has
// another isolation level.
func isPermanent(err error) bool {
	code, _ := SQLState(err)
	const invalidAuthorization, unknownDatabase = "28", "3D000"
	return strings.HasPrefix(code, invalidAuthorization) || code == unknownDatabase || errors.Is(err, errIsolation)
}
