-- The claims of an instance are read in pages, in the order of their ids.
CREATE INDEX claim_instance_id_idx ON claim (instance, id);
DROP INDEX claim_instance_idx;
