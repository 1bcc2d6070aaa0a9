-- Drops every circulation setting of the tenant.
DROP TABLE circulation_settings;
