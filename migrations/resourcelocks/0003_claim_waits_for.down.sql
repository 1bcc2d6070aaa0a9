COMMENT ON COLUMN claim.waits_for IS 'The number of the latest earlier claim that conflicts; 0 within a transaction that looks for it; NULL once held.';
