-- Drops every patron action session of the tenant.
DROP TABLE patron_action_session;
