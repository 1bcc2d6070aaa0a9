-- What blocks the patrons of a group: limits, each for one condition. Any number of
-- limits may name a group and a condition.
CREATE TABLE patron_block_conditions (
    id    uuid  NOT NULL CONSTRAINT patron_block_conditions_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE TABLE patron_block_limits (
    id              uuid  NOT NULL CONSTRAINT patron_block_limits_pkey PRIMARY KEY,
    jsonb           jsonb NOT NULL,
    patron_group_id uuid  GENERATED ALWAYS AS ((jsonb->>'patronGroupId')::uuid) STORED,
    condition_id    uuid  GENERATED ALWAYS AS ((jsonb->>'conditionId')::uuid) STORED
        CONSTRAINT patron_block_limits_condition_id_fkey REFERENCES patron_block_conditions (id)
);
CREATE INDEX patron_block_limits_patron_group_id_idx ON patron_block_limits (patron_group_id);
CREATE INDEX patron_block_limits_condition_id_idx ON patron_block_limits (condition_id);
