-- Destroys no record.
DROP INDEX loan_system_return_date_idx;
