-- Destroys which limits were in force when a loan was lent.
ALTER TABLE loan DROP COLUMN limits, DROP COLUMN lent_date;
