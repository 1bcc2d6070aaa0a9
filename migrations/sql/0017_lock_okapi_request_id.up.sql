-- The check-out that holds a lock, by the name that logs and the history have for
-- it. Instances of an earlier version may work on: the locks they grant have none,
-- and one that they take over keeps that of the check-out before, until it goes.
ALTER TABLE check_out_lock ADD COLUMN okapi_request_id text;

COMMENT ON COLUMN check_out_lock.okapi_request_id IS 'X-Okapi-Request-Id of the call that got or last renewed the lock, for whoever looks.';

ALTER TABLE check_out_lock_change ADD COLUMN lock_okapi_request_id text;

COMMENT ON COLUMN check_out_lock_change.lock_okapi_request_id IS 'The check-out that had the lock; request_id is the call that released it.';
