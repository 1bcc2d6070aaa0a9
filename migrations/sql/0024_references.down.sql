-- Forgets which records name which; the records stay.
DROP TRIGGER circulation_rules_policies ON circulation_rules;
DROP TRIGGER location_primary_service_point ON location;
DROP TRIGGER location_service_point_ids ON location;
DROP FUNCTION link_rules();
DROP FUNCTION link_record();
DROP FUNCTION rule_policies(text, text);
DROP FUNCTION replace_links(text, text, uuid, uuid[]);
DROP TABLE circulation_rules_notice_policies, circulation_rules_request_policies, circulation_rules_loan_policies,
    location_primary_service_point, location_service_point_ids;
ALTER TABLE location DROP COLUMN institution_id, DROP COLUMN campus_id, DROP COLUMN library_id;
ALTER TABLE loan_policy DROP COLUMN fixed_due_date_schedule_id, DROP COLUMN alternate_fixed_due_date_schedule_id;
