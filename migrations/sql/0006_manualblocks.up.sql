-- Blocks that staff put on a patron.
CREATE TABLE manualblocks (
    id      uuid  NOT NULL CONSTRAINT manualblocks_pkey PRIMARY KEY,
    jsonb   jsonb NOT NULL,
    user_id uuid  GENERATED ALWAYS AS ((jsonb->>'userId')::uuid) STORED
);
CREATE INDEX manualblocks_user_id_idx ON manualblocks (user_id);
