-- Destroys which machines sent the check-outs of the history.
ALTER TABLE check_out_history DROP COLUMN machine;
