-- Destroys all locks, claims and notes of forced releases.
DROP TABLE claim_resource;
DROP TABLE claim;
DROP TABLE namespace;
DROP TABLE instance;
DROP TABLE forced_release;
DROP TABLE lock;
DROP SEQUENCE lock_fence;
