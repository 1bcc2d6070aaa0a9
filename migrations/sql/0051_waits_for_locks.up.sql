ALTER TABLE check_out_waiting
    ADD COLUMN waits   jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN version text;

COMMENT ON COLUMN check_out_waiting.waits IS 'The waiting check-outs, longest first: patron, request, service point, and how long at reported_date.';
COMMENT ON COLUMN check_out_waiting.version IS 'The build of the instance; NULL for an earlier one.';
