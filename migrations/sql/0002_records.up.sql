-- FOLIO's records: a table per type with the whole JSON, and a generated column
-- for what must be unique, referenced or found fast. Barcodes and names are
-- compared without regard to case, as FOLIO does.

CREATE TABLE usergroup (
    id    uuid  NOT NULL CONSTRAINT usergroup_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX usergroup_group_key ON usergroup (lower(jsonb->>'group'));

CREATE TABLE users (
    id           uuid  NOT NULL CONSTRAINT users_pkey PRIMARY KEY,
    jsonb        jsonb NOT NULL,
    patron_group uuid  GENERATED ALWAYS AS ((jsonb->>'patronGroup')::uuid) STORED
        CONSTRAINT users_patron_group_fkey REFERENCES usergroup
);
CREATE UNIQUE INDEX users_username_key ON users (lower(jsonb->>'username'));
CREATE UNIQUE INDEX users_barcode_key ON users (lower(jsonb->>'barcode'));
CREATE UNIQUE INDEX users_external_system_id_key ON users (lower(jsonb->>'externalSystemId'));
CREATE INDEX users_patron_group_idx ON users (patron_group);

CREATE TABLE material_type (
    id    uuid  NOT NULL CONSTRAINT material_type_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX material_type_name_key ON material_type (lower(jsonb->>'name'));

CREATE TABLE loan_type (
    id    uuid  NOT NULL CONSTRAINT loan_type_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX loan_type_name_key ON loan_type (lower(jsonb->>'name'));

CREATE TABLE service_point (
    id    uuid  NOT NULL CONSTRAINT service_point_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX service_point_name_key ON service_point (lower(jsonb->>'name'));
CREATE UNIQUE INDEX service_point_code_key ON service_point (lower(jsonb->>'code'));

CREATE TABLE location (
    id    uuid  NOT NULL CONSTRAINT location_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX location_name_key ON location (lower(jsonb->>'name'));
CREATE UNIQUE INDEX location_code_key ON location (lower(jsonb->>'code'));

CREATE TABLE instance (
    id    uuid  NOT NULL CONSTRAINT instance_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX instance_hrid_key ON instance (lower(jsonb->>'hrid'));

CREATE TABLE holdings_record (
    id                    uuid  NOT NULL CONSTRAINT holdings_record_pkey PRIMARY KEY,
    jsonb                 jsonb NOT NULL,
    instance_id           uuid  GENERATED ALWAYS AS ((jsonb->>'instanceId')::uuid) STORED
        CONSTRAINT holdings_record_instance_id_fkey REFERENCES instance,
    permanent_location_id uuid  GENERATED ALWAYS AS ((jsonb->>'permanentLocationId')::uuid) STORED
        CONSTRAINT holdings_record_permanent_location_id_fkey REFERENCES location,
    temporary_location_id uuid  GENERATED ALWAYS AS ((jsonb->>'temporaryLocationId')::uuid) STORED
        CONSTRAINT holdings_record_temporary_location_id_fkey REFERENCES location
);
CREATE UNIQUE INDEX holdings_record_hrid_key ON holdings_record (lower(jsonb->>'hrid'));
CREATE INDEX holdings_record_instance_id_idx ON holdings_record (instance_id);

CREATE TABLE item (
    id                     uuid  NOT NULL CONSTRAINT item_pkey PRIMARY KEY,
    jsonb                  jsonb NOT NULL,
    holdings_record_id     uuid  GENERATED ALWAYS AS ((jsonb->>'holdingsRecordId')::uuid) STORED
        CONSTRAINT item_holdings_record_id_fkey REFERENCES holdings_record,
    material_type_id       uuid  GENERATED ALWAYS AS ((jsonb->>'materialTypeId')::uuid) STORED
        CONSTRAINT item_material_type_id_fkey REFERENCES material_type,
    permanent_loan_type_id uuid  GENERATED ALWAYS AS ((jsonb->>'permanentLoanTypeId')::uuid) STORED
        CONSTRAINT item_permanent_loan_type_id_fkey REFERENCES loan_type,
    temporary_loan_type_id uuid  GENERATED ALWAYS AS ((jsonb->>'temporaryLoanTypeId')::uuid) STORED
        CONSTRAINT item_temporary_loan_type_id_fkey REFERENCES loan_type,
    permanent_location_id  uuid  GENERATED ALWAYS AS ((jsonb->>'permanentLocationId')::uuid) STORED
        CONSTRAINT item_permanent_location_id_fkey REFERENCES location,
    temporary_location_id  uuid  GENERATED ALWAYS AS ((jsonb->>'temporaryLocationId')::uuid) STORED
        CONSTRAINT item_temporary_location_id_fkey REFERENCES location
);
CREATE UNIQUE INDEX item_barcode_key ON item (lower(jsonb->>'barcode'));
CREATE UNIQUE INDEX item_hrid_key ON item (lower(jsonb->>'hrid'));
CREATE INDEX item_holdings_record_id_idx ON item (holdings_record_id);

CREATE TABLE loan_policy (
    id    uuid  NOT NULL CONSTRAINT loan_policy_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX loan_policy_name_key ON loan_policy (lower(jsonb->>'name'));

-- A loan outlives its patron and its item, so it references neither.
CREATE TABLE loan (
    id      uuid    NOT NULL CONSTRAINT loan_pkey PRIMARY KEY,
    jsonb   jsonb   NOT NULL,
    user_id uuid    GENERATED ALWAYS AS ((jsonb->>'userId')::uuid) STORED,
    item_id uuid    GENERATED ALWAYS AS ((jsonb->>'itemId')::uuid) STORED,
    is_open boolean GENERATED ALWAYS AS (coalesce(jsonb->'status'->>'name' = 'Open', false)) STORED
);
CREATE UNIQUE INDEX loan_open_item_id_key ON loan (item_id) WHERE is_open;
CREATE INDEX loan_open_user_id_idx ON loan (user_id) WHERE is_open;
-- With the status, because FOLIO's modules ask for userId and status.name together
-- and a patron's closed loans may be many.
CREATE INDEX loan_user_id_idx ON loan (user_id, lower(jsonb->'status'->>'name'));
CREATE INDEX loan_item_id_idx ON loan (item_id, lower(jsonb->'status'->>'name'));

-- FOLIO's mod-settings entries. An entry without a user is the tenant's.
CREATE TABLE settings_entry (
    id    uuid  NOT NULL CONSTRAINT settings_entry_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX settings_entry_scope_key_user_id_key
    ON settings_entry ((jsonb->>'scope'), (jsonb->>'key'), coalesce(jsonb->>'userId', ''));
CREATE INDEX settings_entry_scope_key_idx ON settings_entry (lower(jsonb->>'scope'), lower(jsonb->>'key')); -- as CQL compares

-- One text per tenant.
CREATE TABLE circulation_rules (
    only_row boolean NOT NULL DEFAULT true,
    id       uuid    NOT NULL DEFAULT gen_random_uuid(),
    rules    text    NOT NULL DEFAULT '',
    CONSTRAINT circulation_rules_pkey PRIMARY KEY (only_row),
    CONSTRAINT circulation_rules_only_row_check CHECK (only_row)
);
INSERT INTO circulation_rules DEFAULT VALUES;

-- What happened, written in the transaction that made it happen.
CREATE TABLE outbox (
    id            bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_pkey PRIMARY KEY,
    creation_date timestamptz NOT NULL DEFAULT clock_timestamp(),
    event_type    text        NOT NULL,
    payload       jsonb       NOT NULL
);
