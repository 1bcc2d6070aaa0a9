-- What self-check machines do, as each instance of circulation reports it: the state of each machine,
-- and what staff have to look at. A report says how long ago something was; the database dates it.
CREATE TABLE self_check_state (
    instance       text        NOT NULL,
    login          text        NOT NULL,
    reported_date  timestamptz NOT NULL,
    connections    integer     NOT NULL,
    address        text,
    connected_date timestamptz,
    last_message   text,
    last_date      timestamptz,
    attention      text,
    refusals       integer[]   NOT NULL,
    CONSTRAINT self_check_state_pkey PRIMARY KEY (instance, login)
);
COMMENT ON COLUMN self_check_state.connections IS 'Open connections at reported_date; they count for 45 s.';
COMMENT ON COLUMN self_check_state.connected_date IS 'When the newest of the connections began; address is its address.';
COMMENT ON COLUMN self_check_state.attention IS 'What the machine said of itself that staff should see.';
COMMENT ON COLUMN self_check_state.refusals IS 'Refused messages by five minutes, the last five before reported_date first.';

CREATE TABLE self_check_note (
    id           uuid        NOT NULL CONSTRAINT self_check_note_pkey PRIMARY KEY,
    noted_date   timestamptz NOT NULL,
    instance     text        NOT NULL,
    login        text        NOT NULL,
    kind         text        NOT NULL,
    code         text,
    user_barcode text,
    item_barcode text,
    loan_id      uuid
);
CREATE INDEX self_check_note_noted_date_idx ON self_check_note (noted_date);
