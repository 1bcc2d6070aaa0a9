-- Drops all staff slips, cancellation reasons, request preferences and address types.
ALTER TABLE request DROP COLUMN cancellation_reason_id;
DROP TABLE addresstype, user_request_preference, cancellation_reason, staff_slips;
DROP FUNCTION refuse_named();
DROP VIEW request_delivery_address_type_id, users_addresses;
