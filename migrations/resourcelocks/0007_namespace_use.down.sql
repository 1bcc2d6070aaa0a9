-- It destroys the times of the last uses.
ALTER TABLE namespace DROP COLUMN used_at;
