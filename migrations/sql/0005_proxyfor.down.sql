-- Drops every proxy relationship of the tenant.
DROP TABLE proxyfor;
