-- Destroys nothing but indexes.
DROP INDEX patron_action_session_created_date_idx, patron_action_session_patron_id_idx;
CREATE INDEX patron_action_session_patron_id_idx ON patron_action_session (patron_id);
