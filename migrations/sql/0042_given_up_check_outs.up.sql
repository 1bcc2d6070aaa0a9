-- The loans that no commit may make any more, because their check-outs were settled as not lent. Rows
-- go after a day.
CREATE TABLE given_up_check_out (
    id           uuid        NOT NULL CONSTRAINT given_up_check_out_pkey PRIMARY KEY,
    created_date timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN given_up_check_out.id IS 'The id that the loan would have got.';
COMMENT ON COLUMN given_up_check_out.created_date IS 'When the check-out was last settled; a day later the row may go.';

CREATE INDEX given_up_check_out_created_date_idx ON given_up_check_out (created_date);
