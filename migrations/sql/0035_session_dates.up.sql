-- Sessions that a desk left open are found from the oldest record on, without a scan. The index of
-- patrons' records gets what says whether a record is the last one of its session.
CREATE INDEX patron_action_session_created_date_idx ON patron_action_session (record_time(jsonb#>>'{metadata,createdDate}'));
DROP INDEX patron_action_session_patron_id_idx;
CREATE INDEX patron_action_session_patron_id_idx ON patron_action_session
    (patron_id, (jsonb->>'actionType'), record_time(jsonb#>>'{metadata,createdDate}'), id);
