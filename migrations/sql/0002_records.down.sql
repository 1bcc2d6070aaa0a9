-- Drops every record of the tenant.
DROP TABLE outbox;
DROP TABLE circulation_rules;
DROP TABLE settings_entry;
DROP TABLE loan;
DROP TABLE loan_policy;
DROP TABLE item;
DROP TABLE holdings_record;
DROP TABLE instance;
DROP TABLE location;
DROP TABLE service_point;
DROP TABLE loan_type;
DROP TABLE material_type;
DROP TABLE users;
DROP TABLE usergroup;
