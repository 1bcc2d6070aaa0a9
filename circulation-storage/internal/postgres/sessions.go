package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
)

const expiredSessionsSQL = `
SELECT patron_id::text, jsonb->>'actionType'
  FROM {schema}.patron_action_session
 WHERE $1::text IN ('', jsonb->>'actionType')
 GROUP BY 1, 2
HAVING max({schema}.record_time(jsonb#>>'{metadata,createdDate}')) < $2::timestamptz
 ORDER BY max({schema}.record_time(jsonb#>>'{metadata,createdDate}')), 1, 2
 LIMIT $3::integer`

// ExpiredSessions implements httpapi.SessionStore.
func (s *RecordStore) ExpiredSessions(ctx context.Context, actionType string, before time.Time, limit int) ([]records.Session, error) {
	return readRows(ctx, s.db, "finding expired sessions", expiredSessionsSQL, []any{actionType, before, limit}, pgx.RowToStructByPos[records.Session])
}
