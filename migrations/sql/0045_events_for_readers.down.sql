-- Nothing is lost. Records write events again, whether a process delivers them or not.
ALTER TABLE loan ENABLE TRIGGER record_event;
ALTER TABLE request ENABLE TRIGGER record_event;
ALTER TABLE check_in_operation ENABLE TRIGGER record_event;
ALTER TABLE circulation_settings ENABLE TRIGGER record_event;
ALTER TABLE circulation_rules ENABLE TRIGGER record_event;
