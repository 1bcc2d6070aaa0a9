CREATE TABLE patron_notice_policy (
    id    uuid  NOT NULL CONSTRAINT patron_notice_policy_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX patron_notice_policy_name_key ON patron_notice_policy (lower(jsonb->>'name'));
