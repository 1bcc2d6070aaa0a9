-- Who may borrow for whom.
CREATE TABLE proxyfor (
    id            uuid  NOT NULL CONSTRAINT proxyfor_pkey PRIMARY KEY,
    jsonb         jsonb NOT NULL,
    user_id       uuid  GENERATED ALWAYS AS ((jsonb->>'userId')::uuid) STORED,
    proxy_user_id uuid  GENERATED ALWAYS AS ((jsonb->>'proxyUserId')::uuid) STORED
);
CREATE UNIQUE INDEX proxyfor_user_id_proxy_user_id_key ON proxyfor (user_id, proxy_user_id);
CREATE INDEX proxyfor_proxy_user_id_idx ON proxyfor (proxy_user_id);
