-- Forgets which check-outs hold locks, and held those that were released by force.
-- Run it only with storages of this version stopped: they take no lock without it.
ALTER TABLE check_out_lock_change DROP COLUMN lock_okapi_request_id;
ALTER TABLE check_out_lock DROP COLUMN okapi_request_id;
