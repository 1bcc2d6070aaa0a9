-- How check-outs ended, so that staff can say why one was refused and how long
-- they wait. It is no ledger: entries come from circulation's memory some time
-- after the check-out, and the sweeper deletes them when they are old.
CREATE TABLE check_out_history (
    id               uuid        NOT NULL,
    ended_date       timestamptz NOT NULL,
    outcome          text        NOT NULL,
    code             text,
    reason           text,
    user_barcode     text,
    item_barcode     text,
    user_id          uuid,
    loan_id          uuid,
    service_point_id uuid,
    wait_ms          integer,
    took_ms          integer     NOT NULL,
    repeats          integer     NOT NULL,
    request_id       text,
    instance         text,
    CONSTRAINT check_out_history_pkey PRIMARY KEY (id)
);

COMMENT ON COLUMN check_out_history.ended_date IS 'When it ended by the clock of this database, in whole milliseconds as it is answered.';
COMMENT ON COLUMN check_out_history.wait_ms IS 'How long it waited for the patron''s lock; NULL when it asked for none.';
COMMENT ON COLUMN check_out_history.repeats IS 'How often its commit was sent again.';
COMMENT ON COLUMN check_out_history.instance IS 'The circulation instance that did it, for whoever looks.';

-- Each serves one way to search; all end with the date, in which pages are sorted.
CREATE INDEX check_out_history_ended_date_idx ON check_out_history (ended_date);
CREATE INDEX check_out_history_user_barcode_idx ON check_out_history (lower(user_barcode), ended_date);
CREATE INDEX check_out_history_item_barcode_idx ON check_out_history (lower(item_barcode), ended_date);
CREATE INDEX check_out_history_outcome_idx ON check_out_history (outcome, ended_date);

-- How many check-outs wait for a lock, as each instance of circulation said last.
CREATE TABLE check_out_waiting (
    holder        text        NOT NULL,
    waiting       integer     NOT NULL,
    reported_date timestamptz NOT NULL,
    CONSTRAINT check_out_waiting_pkey PRIMARY KEY (holder)
);

COMMENT ON COLUMN check_out_waiting.holder IS 'The instance; empty for those that do not give their name.';
