-- The events of records that were not delivered are lost.

DROP TRIGGER record_event ON circulation_rules;
DROP TRIGGER record_event ON circulation_settings;
DROP TRIGGER record_event ON check_in_operation;
DROP TRIGGER record_event ON request;
DROP TRIGGER record_event ON loan;
DROP FUNCTION add_rules_event();
DROP FUNCTION add_record_event();
DROP TABLE outbox_lease;
DELETE FROM outbox WHERE topic IS NOT NULL;
ALTER TABLE outbox DROP COLUMN topic, DROP COLUMN record_id, DROP COLUMN patron_id, DROP COLUMN old, DROP COLUMN new,
    ALTER COLUMN payload DROP DEFAULT;
