-- The changes of loans of the last day, so that one that is sent again is recognised. The loan is
-- not referenced: it can be deleted while a change still names it.
CREATE TABLE loan_change (
    id           uuid        NOT NULL CONSTRAINT loan_change_pkey PRIMARY KEY,
    loan_id      uuid        NOT NULL,
    created_date timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN loan_change.id IS 'Chosen by the caller, the same for all tries of one change.';

CREATE INDEX loan_change_created_date_idx ON loan_change (created_date);
