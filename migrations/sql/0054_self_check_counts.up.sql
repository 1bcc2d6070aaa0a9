-- Counts take the place of refusals, which builds before this one still write during an upgrade.
ALTER TABLE self_check_state
    ALTER COLUMN refusals SET DEFAULT '{}',
    ADD COLUMN counts jsonb NOT NULL DEFAULT '[]';

COMMENT ON COLUMN self_check_state.refusals IS 'Written by builds before counts.';
COMMENT ON COLUMN self_check_state.counts IS 'What happened, by five minutes, the last five before reported_date first.';
