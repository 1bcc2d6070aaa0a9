CREATE TABLE request_policy (
    id    uuid  NOT NULL CONSTRAINT request_policy_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX request_policy_name_key ON request_policy (lower(jsonb->>'name'));
