-- A removal now finds the next claim to wait for in the same statement, so 0 is no longer stored.
COMMENT ON COLUMN claim.waits_for IS 'The number of the latest earlier claim that conflicts; NULL once held.';
