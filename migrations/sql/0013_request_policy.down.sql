-- Drops every request policy of the tenant.
DROP TABLE request_policy;
