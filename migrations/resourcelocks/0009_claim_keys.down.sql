-- Destroys nothing. Missing keys are made again, from cuts, which claims of newer builds do not have.
ALTER TABLE claim_resource ALTER COLUMN cuts DROP DEFAULT;
COMMENT ON COLUMN claim_resource.cuts IS 'The lengths of the paths that this one begins with, for builds that store no key.';

CREATE OR REPLACE FUNCTION claim_resource_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.key := (
        SELECT coalesce(string_agg('\x00'::bytea || substring(sha256(
                   substring(NEW.path FROM NEW.cuts[i] + 1 FOR NEW.cuts[i + 1] - NEW.cuts[i] - 1)) FROM 1 FOR 15), ''::bytea ORDER BY i), ''::bytea)
          FROM generate_series(1, least(64, cardinality(NEW.cuts) - 1)) i);
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER claim_resource_key BEFORE INSERT OR UPDATE ON claim_resource
    FOR EACH ROW WHEN (NEW.key IS NULL) EXECUTE FUNCTION claim_resource_key();
