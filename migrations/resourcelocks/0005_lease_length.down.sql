-- It destroys the lengths of leases.
ALTER TABLE instance DROP COLUMN lease;
