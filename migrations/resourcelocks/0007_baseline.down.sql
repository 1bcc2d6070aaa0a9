-- Destroys all locks, claims and notes of forced releases.
DROP TABLE removed_claim;
DROP TABLE claim_resource;
DROP FUNCTION claim_resource_key;
DROP TABLE claim;
DROP TABLE namespace;
DROP TABLE instance;
DROP TABLE forced_release;
DROP TABLE lock;
DROP SEQUENCE lock_fence;
