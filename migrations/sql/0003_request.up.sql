-- A request outlives its patron, its item and its title, so it references none.
-- The columns are what the commit of a check-out and FOLIO's modules look for.
CREATE TABLE request (
    id             uuid    NOT NULL CONSTRAINT request_pkey PRIMARY KEY,
    jsonb          jsonb   NOT NULL,
    item_id        uuid    GENERATED ALWAYS AS ((jsonb->>'itemId')::uuid) STORED,
    instance_id    uuid    GENERATED ALWAYS AS ((jsonb->>'instanceId')::uuid) STORED,
    requester_id   uuid    GENERATED ALWAYS AS ((jsonb->>'requesterId')::uuid) STORED,
    status         text    GENERATED ALWAYS AS (jsonb->>'status') STORED,
    is_open        boolean GENERATED ALWAYS AS (coalesce(left(jsonb->>'status', 7) = 'Open - ', false)) STORED,
    position       integer GENERATED ALWAYS AS ((jsonb->>'position')::integer) STORED,
    -- NULL unless the request is open: those that are closed take no place.
    queue_position integer GENERATED ALWAYS AS (
        CASE WHEN left(jsonb->>'status', 7) = 'Open - ' THEN (jsonb->>'position')::integer END) STORED,
    -- Checked at the end of a statement, or later where a transaction defers it, so
    -- that the requests of a queue can change places.
    CONSTRAINT request_item_id_position_key UNIQUE (item_id, queue_position) DEFERRABLE INITIALLY IMMEDIATE
);
CREATE INDEX request_open_instance_id_idx ON request (instance_id, queue_position) WHERE is_open;
CREATE INDEX request_item_id_idx ON request (item_id, lower(status)); -- as CQL compares
CREATE INDEX request_instance_id_idx ON request (instance_id, lower(status));
CREATE INDEX request_requester_id_idx ON request (requester_id, lower(status));
