-- The check-ins of the last day and what they were answered, so that one that is
-- sent again is answered like the first. Item and loan are not referenced: they can
-- be deleted while a check-in still names them.
CREATE TABLE check_in (
    id           uuid        NOT NULL CONSTRAINT check_in_pkey PRIMARY KEY,
    item_id      uuid        NOT NULL,
    item         text        NOT NULL,
    loan         text,
    created_date timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN check_in.id IS 'Chosen by the caller, the same for all tries of one check-in.';
COMMENT ON COLUMN check_in.item IS 'The answered item: JSON, but text, to be given again word for word.';
COMMENT ON COLUMN check_in.loan IS 'The answered loan, as item; null when the item was not on loan.';

CREATE INDEX check_in_created_date_idx ON check_in (created_date);
