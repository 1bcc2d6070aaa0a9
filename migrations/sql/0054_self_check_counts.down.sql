-- Destroys what was counted at self-check machines in the last hour.
ALTER TABLE self_check_state
    ALTER COLUMN refusals DROP DEFAULT,
    DROP COLUMN counts;
COMMENT ON COLUMN self_check_state.refusals IS 'Refused messages by five minutes, the last five before reported_date first.';
