-- It destroys the notes of removed claims, so the claims that still wait for those wait for ever, and
-- claims with a path of more than 2,000 bytes, which the former index cannot hold.
DELETE FROM claim WHERE number < 0;
DELETE FROM claim_resource WHERE number < 0;
COMMENT ON COLUMN claim.waits_for IS 'The number of the latest earlier claim that conflicts; NULL once held.';
DROP INDEX claim_waits_for_idx;
CREATE INDEX claim_waits_for_idx ON claim (namespace, waits_for) WHERE waits_for IS NOT NULL;
ALTER TABLE claim DROP COLUMN prefixes;
DROP TABLE removed_claim;

DELETE FROM claim c USING claim_resource r WHERE r.namespace = c.namespace AND r.number = c.number AND octet_length(r.path) > 2000;
DELETE FROM claim_resource r WHERE NOT EXISTS (SELECT FROM claim c WHERE c.namespace = r.namespace AND c.number = r.number);
DROP INDEX claim_resource_key_idx;
ALTER TABLE claim_resource DROP CONSTRAINT claim_resource_pkey;
CREATE INDEX claim_resource_number_idx ON claim_resource (namespace, number);
DROP TRIGGER claim_resource_key ON claim_resource;
DROP FUNCTION claim_resource_key();
ALTER TABLE claim_resource DROP COLUMN key;
ALTER TABLE claim_resource ADD CONSTRAINT claim_resource_pkey PRIMARY KEY (namespace, path, write, number);
COMMENT ON COLUMN claim_resource.cuts IS 'The lengths of the paths that this one begins with, from the root to itself.';
