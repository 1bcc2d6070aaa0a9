-- Why the reader of events refused this one for itself; NULL while it waits for delivery. Instances of an
-- earlier build send such an event again.
ALTER TABLE outbox ADD COLUMN refused text;
