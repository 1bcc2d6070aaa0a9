package database

import "time"

// LateMargin is how long before its bound a COMMIT counts as unconfirmed.
const LateMargin = lateMargin

// ResetPause is the least time between two resets of the pools.
const ResetPause = resetPause

// Unconfirmed marks a connection whose last COMMIT the standby did not confirm.
const Unconfirmed = unconfirmed

// SetWritesMargin sets how much longer the last batch of a transaction may take than a COMMIT. It is called
// before the first transaction.
func (db *DB) SetWritesMargin(d time.Duration) { db.writesMargin = d }

// SetCommitTimeout sets how long a COMMIT may take. It is called before the first one.
func (db *DB) SetCommitTimeout(d time.Duration) { db.commitTimeout = d }
