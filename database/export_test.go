package database

import "time"

// SetCommitTimeout sets how long a COMMIT may take. It is called before the first one.
func (db *DB) SetCommitTimeout(d time.Duration) { db.commitTimeout = d }
