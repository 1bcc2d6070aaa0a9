-- Anonymization by an interval reads the returned loans that have a patron, the oldest first. Open loans
-- are not in the index, so a check-out writes nothing to it. Writes of loans wait while it is made.
CREATE INDEX loan_system_return_date_idx ON loan (record_time(jsonb->>'systemReturnDate'), id)
    WHERE user_id IS NOT NULL AND jsonb->>'systemReturnDate' IS NOT NULL;
