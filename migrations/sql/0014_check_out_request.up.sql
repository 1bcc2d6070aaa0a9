-- What the Idempotency-Keys of check-outs stand for. One at a time works on a
-- check-out, by the claim it has; the loan's id is chosen with the key, so that
-- whoever finishes the check-out commits the same loan. Rows go after a day.
CREATE TABLE check_out_request (
    key          text        NOT NULL,
    body_hash    bytea       NOT NULL,
    loan_id      uuid        NOT NULL DEFAULT gen_random_uuid(),
    claim_id     uuid        NOT NULL,
    claimed_date timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_ms     integer     NOT NULL,
    holder       text,
    answer       text,
    CONSTRAINT check_out_request_pkey PRIMARY KEY (key),
    CONSTRAINT check_out_request_claim_id_key UNIQUE (claim_id)
);

COMMENT ON COLUMN check_out_request.claim_id IS 'New with every claim; a commit shows it, and only its holder may set the answer.';
COMMENT ON COLUMN check_out_request.claimed_date IS 'When it was claimed, renewed, given up or finished; a day later the row may go.';
COMMENT ON COLUMN check_out_request.lease_ms IS 'How long the claim lives from claimed_date on, in milliseconds; 0 was given up.';
COMMENT ON COLUMN check_out_request.holder IS 'The instance that has the claim, for whoever looks.';
COMMENT ON COLUMN check_out_request.answer IS 'JSON, but text, to be given again word for word.';

CREATE INDEX check_out_request_claimed_date_idx ON check_out_request (claimed_date);
