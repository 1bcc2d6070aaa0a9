-- Drops every manual block of the tenant.
DROP TABLE manualblocks;
