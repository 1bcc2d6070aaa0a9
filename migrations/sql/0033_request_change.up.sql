-- The changes of requests of the last day, so that one that is sent again is recognised. The request
-- is not referenced: a change may delete it.
CREATE TABLE request_change (
    id           uuid        NOT NULL CONSTRAINT request_change_pkey PRIMARY KEY,
    request_id   uuid        NOT NULL,
    created_date timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN request_change.id IS 'Chosen by the caller, the same for all tries of one change.';

CREATE INDEX request_change_created_date_idx ON request_change (created_date);
