-- Destroys nothing: each instance of circulation reads reference records each second again.
DROP FUNCTION renew_reference_version() CASCADE;
DROP TABLE reference_version;
