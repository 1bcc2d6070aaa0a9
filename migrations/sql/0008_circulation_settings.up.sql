CREATE TABLE circulation_settings (
    id    uuid  NOT NULL CONSTRAINT circulation_settings_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX circulation_settings_name_key ON circulation_settings (lower(jsonb->>'name'));
