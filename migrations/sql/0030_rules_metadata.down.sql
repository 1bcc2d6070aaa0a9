-- Forgets the dates and users of the writes of the rules.
ALTER TABLE circulation_rules DROP COLUMN metadata;
