-- Drops every automated block of the tenant.
DROP TABLE automated_patron_blocks;
