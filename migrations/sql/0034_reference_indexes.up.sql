-- A DELETE finds what names the record through an index. Items have none for their material type and
-- their permanent loan type: each check-out writes its item, and would write these indexes too. The
-- tables of locations and loan policies are small.
--
-- The indexes are built in this transaction. Until it ends, check-outs and check-ins wait: about 3 s
-- for a million items.
CREATE INDEX holdings_record_permanent_location_id_idx ON holdings_record (permanent_location_id);
CREATE INDEX holdings_record_temporary_location_id_idx ON holdings_record (temporary_location_id) WHERE temporary_location_id IS NOT NULL;
CREATE INDEX item_temporary_loan_type_id_idx ON item (temporary_loan_type_id) WHERE temporary_loan_type_id IS NOT NULL;
CREATE INDEX item_permanent_location_id_idx ON item (permanent_location_id) WHERE permanent_location_id IS NOT NULL;
CREATE INDEX item_temporary_location_id_idx ON item (temporary_location_id) WHERE temporary_location_id IS NOT NULL;

-- Texts, because what was stored before the fields were checked may be no UUID.
CREATE FUNCTION user_address_types(jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY (SELECT lower(v #>> '{}') FROM jsonb_path_query($1, '$.personal.addresses[*].addressTypeId') AS v);
END
$$;
CREATE INDEX users_address_types_idx ON users USING gin (user_address_types(jsonb));
CREATE INDEX request_delivery_address_type_id_idx ON request (lower(jsonb->>'deliveryAddressTypeId'))
    WHERE jsonb->>'deliveryAddressTypeId' IS NOT NULL;

-- refuse_named_address_type fails as a foreign key does. Its detail is the record and one that names
-- it. The views of migration 28 stay for instances of the release before.
CREATE FUNCTION refuse_named_address_type() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    named_by   uuid;
    constraint_name text := 'users_addresses_fkey';
BEGIN
    SELECT id INTO named_by FROM users WHERE user_address_types(jsonb) @> ARRAY[OLD.id::text] LIMIT 1;
    IF named_by IS NULL THEN
        constraint_name := 'request_delivery_address_type_id_fkey';
        SELECT id INTO named_by FROM request WHERE lower(jsonb->>'deliveryAddressTypeId') = OLD.id::text LIMIT 1;
    END IF;
    IF named_by IS NOT NULL THEN
        RAISE foreign_key_violation USING MESSAGE = 'the record is named', DETAIL = OLD.id || ' ' || named_by, CONSTRAINT = constraint_name;
    END IF;
    RETURN OLD;
END
$$;
DROP TRIGGER addresstype_of_users ON addresstype;
DROP TRIGGER addresstype_of_requests ON addresstype;
DROP FUNCTION refuse_named();
CREATE TRIGGER addresstype_named BEFORE DELETE ON addresstype FOR EACH ROW EXECUTE FUNCTION refuse_named_address_type();
