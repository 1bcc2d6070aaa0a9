-- What a desk reads: staff slips, cancellation reasons, request preferences and address types.
CREATE TABLE staff_slips (
    id    uuid  NOT NULL CONSTRAINT staff_slips_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX staff_slips_name_key ON staff_slips (lower(jsonb->>'name'));

CREATE TABLE cancellation_reason (
    id    uuid  NOT NULL CONSTRAINT cancellation_reason_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX cancellation_reason_name_key ON cancellation_reason (lower(jsonb->>'name'));

CREATE TABLE user_request_preference (
    id      uuid  NOT NULL CONSTRAINT user_request_preference_pkey PRIMARY KEY,
    jsonb   jsonb NOT NULL,
    user_id uuid  GENERATED ALWAYS AS ((jsonb->>'userId')::uuid) STORED
        CONSTRAINT user_request_preference_user_id_key UNIQUE
);

CREATE TABLE addresstype (
    id    uuid  NOT NULL CONSTRAINT addresstype_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX addresstype_address_type_key ON addresstype (lower(jsonb->>'addressType'));

-- NOT VALID leaves the requests that name a reason from before this table.
ALTER TABLE request
    ADD COLUMN cancellation_reason_id uuid GENERATED ALWAYS AS ((jsonb->>'cancellationReasonId')::uuid) STORED,
    ADD CONSTRAINT request_cancellation_reason_id_fkey FOREIGN KEY (cancellation_reason_id) REFERENCES cancellation_reason NOT VALID;
CREATE INDEX request_cancellation_reason_id_idx ON request (cancellation_reason_id) WHERE cancellation_reason_id IS NOT NULL;

-- Users and requests may name missing address types, as in FOLIO a request may. These views list
-- which names which, and the trigger refuses to delete a type that one of them has.
CREATE VIEW users_addresses AS
    SELECT u.id AS source_id, (v #>> '{}')::uuid AS target_id
      FROM users u, jsonb_path_query(u.jsonb, '$.personal.addresses[*].addressTypeId') AS v;
CREATE VIEW request_delivery_address_type_id AS
    SELECT id AS source_id, (jsonb->>'deliveryAddressTypeId')::uuid AS target_id FROM request;

-- refuse_named fails as a foreign key does. Its arguments are a view and the name of the constraint.
CREATE FUNCTION refuse_named() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    named boolean;
BEGIN
    EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE target_id = $1)', TG_ARGV[0]) INTO named USING OLD.id;
    IF named THEN
        RAISE foreign_key_violation USING MESSAGE = 'the record is named', DETAIL = OLD.id, CONSTRAINT = TG_ARGV[1];
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER addresstype_of_users BEFORE DELETE ON addresstype
    FOR EACH ROW EXECUTE FUNCTION refuse_named(users_addresses, users_addresses_fkey);
CREATE TRIGGER addresstype_of_requests BEFORE DELETE ON addresstype
    FOR EACH ROW EXECUTE FUNCTION refuse_named(request_delivery_address_type_id, request_delivery_address_type_id_fkey);
