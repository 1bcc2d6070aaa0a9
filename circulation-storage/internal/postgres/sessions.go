package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
)

// expiredSessionsSQL reads records from the oldest on, and takes each that is the last of its session.
// So it ends at the limit, however many records there are.
const expiredSessionsSQL = `
SELECT s.patron_id::text, s.jsonb->>'actionType'
  FROM {schema}.patron_action_session s
 WHERE {schema}.record_time(s.jsonb#>>'{metadata,createdDate}') < $2::timestamptz AND $1::text IN ('', s.jsonb->>'actionType')
   AND NOT EXISTS (SELECT FROM {schema}.patron_action_session later
                    WHERE later.patron_id = s.patron_id AND later.jsonb->>'actionType' = s.jsonb->>'actionType'
                      AND ({schema}.record_time(later.jsonb#>>'{metadata,createdDate}'), later.id)
                        > ({schema}.record_time(s.jsonb#>>'{metadata,createdDate}'), s.id))
 ORDER BY {schema}.record_time(s.jsonb#>>'{metadata,createdDate}'), 1, 2
 LIMIT $3::integer`

// ExpiredSessions implements httpapi.SessionStore.
func (s *RecordStore) ExpiredSessions(ctx context.Context, actionType string, before time.Time, limit int) ([]records.Session, error) {
	return readRows(ctx, s.db, "finding expired sessions", expiredSessionsSQL, []any{actionType, before, limit}, pgx.RowToStructByPos[records.Session])
}
