-- The dates and users of the first and the last write of the rules. NULL means that they were written before this migration.
ALTER TABLE circulation_rules ADD COLUMN metadata jsonb;
