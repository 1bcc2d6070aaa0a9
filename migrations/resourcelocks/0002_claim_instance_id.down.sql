-- It destroys no data.
CREATE INDEX claim_instance_idx ON claim (instance);
DROP INDEX claim_instance_id_idx;
