-- Lists of loans in the order of their dates read an index instead of all loans.
--
-- record_time reads a date as records hold it. A date without an offset is UTC. The
-- function is immutable although a cast to timestamptz is not: it casts only texts that
-- name their offset, and no setting changes how PostgreSQL reads those.
--
-- Stored columns rewrite the table, and the indexes are built in this transaction. Until
-- it ends, check-outs wait: about 20 s for a million loans.
CREATE FUNCTION record_time(text) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
SELECT CASE WHEN $1 !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}.*)?$' THEN NULL
            WHEN $1 ~ 'T.*(Z|[+-][0-9]{2}:?[0-9]{2})$' THEN $1::timestamptz
            ELSE $1::timestamp AT TIME ZONE 'UTC' END
$$;

ALTER TABLE loan
    ADD COLUMN loan_date timestamptz GENERATED ALWAYS AS (record_time(jsonb->>'loanDate')) STORED,
    ADD COLUMN due_date  timestamptz GENERATED ALWAYS AS (record_time(jsonb->>'dueDate')) STORED;
CREATE INDEX loan_loan_date_idx ON loan (loan_date, id);
CREATE INDEX loan_due_date_idx ON loan (due_date, id);
-- For lists of open loans, and of those that are overdue.
CREATE INDEX loan_status_due_date_idx ON loan (lower(jsonb->'status'->>'name'), due_date);
ANALYZE loan;
