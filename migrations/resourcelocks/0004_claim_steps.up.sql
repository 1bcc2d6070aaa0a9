-- Paths are compared by keys. A key has 16 bytes for each segment: a zero byte, then the first 15
-- bytes of the segment's SHA-256. So a path begins with another if its key does, the paths below one
-- are a range of an index, and the index fits paths of any length.
--
-- Builds before this one store no key. The trigger makes it for them, from the first 64 segments.
-- A deeper path of theirs counts as the one that these are. They find conflicts by path, without
-- an index from now on.
ALTER TABLE claim_resource ADD COLUMN key bytea;

CREATE FUNCTION claim_resource_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.key := (
        SELECT coalesce(string_agg('\x00'::bytea || substring(sha256(
                   substring(NEW.path FROM NEW.cuts[i] + 1 FOR NEW.cuts[i + 1] - NEW.cuts[i] - 1)) FROM 1 FOR 15), ''::bytea ORDER BY i), ''::bytea)
          FROM generate_series(1, least(64, cardinality(NEW.cuts) - 1)) i);
    RETURN NEW;
END $$;

CREATE TRIGGER claim_resource_key BEFORE INSERT OR UPDATE ON claim_resource
    FOR EACH ROW WHEN (NEW.key IS NULL) EXECUTE FUNCTION claim_resource_key();

UPDATE claim_resource SET position = position;
ALTER TABLE claim_resource ALTER COLUMN key SET NOT NULL;

-- A read looks only at writes, so these are a range of their own.
ALTER TABLE claim_resource DROP CONSTRAINT claim_resource_pkey;
DROP INDEX claim_resource_number_idx;
ALTER TABLE claim_resource ADD CONSTRAINT claim_resource_pkey PRIMARY KEY (namespace, number, position);
CREATE INDEX claim_resource_key_idx ON claim_resource (namespace, write, key, number);

COMMENT ON COLUMN claim_resource.key IS 'For each segment a zero byte and the first 15 bytes of its SHA-256.';
COMMENT ON COLUMN claim_resource.cuts IS 'The lengths of the paths that this one begins with, for builds that store no key.';

-- One transaction places only some of the claims that waited for a removed one. The others wait for
-- its number until a later transaction has placed them.
CREATE TABLE removed_claim (
    number    bigint NOT NULL,
    namespace text   COLLATE "C" NOT NULL,
    CONSTRAINT removed_claim_pkey PRIMARY KEY (namespace, number)
);
COMMENT ON TABLE removed_claim IS 'Removed claims that others still wait for. Each settling places some of those.';

-- The default is that of builds which do not count.
ALTER TABLE claim ADD COLUMN prefixes integer NOT NULL DEFAULT 64;
UPDATE claim c SET prefixes = coalesce((
    SELECT sum(least(65, cardinality(r.cuts))) FROM claim_resource r WHERE r.namespace = c.namespace AND r.number = c.number), 64);
COMMENT ON COLUMN claim.prefixes IS 'How many paths its paths begin with: the work of placing it.';

DROP INDEX claim_waits_for_idx;
CREATE INDEX claim_waits_for_idx ON claim (namespace, waits_for, number) WHERE waits_for IS NOT NULL;
COMMENT ON COLUMN claim.waits_for IS 'The number of the latest earlier claim that conflicts, present or in removed_claim; NULL once held.';

-- Statements keep the plans that connections made while no claim was stored. Statistics of an empty
-- table make all its indexes look alike. So some rows stay, of no instance and with numbers below 0.
INSERT INTO claim (id, instance, number, waits_for, abandon, resources, namespace, owner)
SELECT gen_random_uuid(), '00000000-0000-0000-0000-000000000000', -n, -n - 1, '0', 1, '', '' FROM generate_series(1, 200) n;
INSERT INTO claim_resource (number, position, write, namespace, path, cuts, key)
SELECT -n, 0, n % 2 = 0, '', '', '{0}', (SELECT string_agg(sha256((n::text || i)::bytea), '') FROM generate_series(1, 32) i)
  FROM generate_series(1, 200) n;
