package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
)

// expiredSessionsSQL compares the dates as texts, because the service writes all of them alike. It
// reads every session, and a conversion of each date would take most of the time.
const expiredSessionsSQL = `
SELECT patron_id::text, action
  FROM (SELECT patron_id, jsonb->>'actionType' AS action, max(jsonb#>>'{metadata,createdDate}' COLLATE "C")::timestamptz AS latest
          FROM {schema}.patron_action_session
         WHERE $1::text IN ('', jsonb->>'actionType')
         GROUP BY 1, 2) AS sessions
 WHERE latest < $2::timestamptz
 ORDER BY latest, 1, 2
 LIMIT $3::integer`

// ExpiredSessions implements httpapi.SessionStore.
func (s *RecordStore) ExpiredSessions(ctx context.Context, actionType string, before time.Time, limit int) ([]records.Session, error) {
	return readRows(ctx, s.db, "finding expired sessions", expiredSessionsSQL, []any{actionType, before, limit}, pgx.RowToStructByPos[records.Session])
}
