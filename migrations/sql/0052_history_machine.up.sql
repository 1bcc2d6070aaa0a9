ALTER TABLE check_out_history ADD COLUMN machine text;

COMMENT ON COLUMN check_out_history.machine IS 'The login of the self-check machine, or else the caller''s address; NULL for an entry of an earlier build.';
