package postgres

import "context"

// repeatTables keep for a day what repeats of commits are recognised by.
var repeatTables = [...]string{"check_in", "loan_change", "request_change"}

// past is when a row c is a day old. A clock that was set back makes it last longer, but not for
// ever. No index can be searched by clock_timestamp().
const past = `c.created_date NOT BETWEEN statement_timestamp() - interval '1 day' AND statement_timestamp() + interval '1 day'`

const sweepRepeatsSQL = `
WITH old AS (SELECT c.id FROM {table} c WHERE ` + past + ` LIMIT $1::bigint` + skipLocked + `)
DELETE FROM {table} c USING old WHERE c.id = old.id AND ` + past + `
RETURNING ` + notDurable

// SweepRepeats implements commit.Store.
func (s *CommitStore) SweepRepeats(ctx context.Context, limit int) (swept int, err error) {
	for _, table := range repeatTables {
		n, err := s.db.exec(ctx, s.db.pool, "sweeping a "+table, nameTable(sweepRepeatsSQL, table), limit)
		if err != nil {
			return swept, err
		}
		swept += n
	}
	return swept, nil
}
