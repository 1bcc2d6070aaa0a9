-- Destroys the reasons. Events that were refused wait for delivery again.
ALTER TABLE outbox DROP COLUMN refused;
