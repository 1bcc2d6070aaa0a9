-- Drops every record, lock and event of the tenant: run only with both services stopped.
DROP VIEW users_addresses, request_delivery_address_type_id;
DROP TABLE outbox;
DROP TABLE check_out_waiting, check_out_history, check_out_request;
DROP TABLE staff_slips, addresstype, request_change, request, cancellation_reason;
DROP TABLE patron_action_session, check_in, loan_change, loan_history, loan;
DROP TABLE title_setting_fence, circulation_settings, settings_entry;
DROP TABLE circulation_rules_notice_policies, circulation_rules_request_policies, circulation_rules_loan_policies, circulation_rules;
DROP TABLE request_policy, patron_notice_policy, loan_policy, fixed_due_date_schedule;
DROP TABLE item, holdings_record, instance, loan_type, material_type;
DROP TABLE location_service_point_ids, location_primary_service_point, location;
DROP TABLE loclibrary, loccampus, locinstitution, service_point;
DROP TABLE user_request_preference, patron_block_limits, patron_block_conditions, automated_patron_blocks, manualblocks, proxyfor;
DROP TABLE users, usergroup;
DROP TABLE check_out_lock_change, check_out_lock_environment, lock_settings_version, check_out_lock;
DROP FUNCTION refuse_named_address_type, add_loan_history, fence_title_setting, link_rules, rule_policies, disallow_service_point;
DROP FUNCTION user_address_types, link_record, replace_links, record_time;
