-- Each turn of the delivery reads the events that wait. Those that were refused stay for days, and it
-- read all of them each second. Commits write to the index with their events, so only where there is a
-- reader. They wait while it is made.
CREATE INDEX outbox_waiting_idx ON outbox (id) WHERE refused IS NULL;
