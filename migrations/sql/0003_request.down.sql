-- Drops every request of the tenant.
DROP TABLE request;
