-- Blocks that follow from what a patron owes and has on loan: one list for each
-- patron who has one.
CREATE TABLE automated_patron_blocks (
    user_id uuid  NOT NULL CONSTRAINT automated_patron_blocks_pkey PRIMARY KEY,
    jsonb   jsonb NOT NULL
);
