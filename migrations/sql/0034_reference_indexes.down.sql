-- Destroys nothing but indexes.
DROP TRIGGER addresstype_named ON addresstype;
DROP FUNCTION refuse_named_address_type();
DROP INDEX holdings_record_permanent_location_id_idx, holdings_record_temporary_location_id_idx, item_temporary_loan_type_id_idx,
    item_permanent_location_id_idx, item_temporary_location_id_idx, users_address_types_idx, request_delivery_address_type_id_idx;
DROP FUNCTION user_address_types(jsonb);
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
