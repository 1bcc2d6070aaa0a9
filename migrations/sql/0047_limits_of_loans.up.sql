-- What a check-out counted stays with its loan, so that operators can count it again. Both columns are
-- NULL in loans of an earlier build, and adding them rewrites no row.
ALTER TABLE loan ADD COLUMN limits jsonb, ADD COLUMN lent_date timestamptz;
ALTER TABLE loan ALTER COLUMN lent_date SET DEFAULT clock_timestamp();

COMMENT ON COLUMN loan.limits IS 'The limits that the commit of the check-out counted; NULL for none.';
COMMENT ON COLUMN loan.lent_date IS 'When the loan was written, by the clock of this database.';
