ALTER TABLE loan DROP COLUMN loan_date, DROP COLUMN due_date;
DROP FUNCTION record_time(text);
