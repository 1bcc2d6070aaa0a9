-- Drops every campus of the tenant.
DROP TABLE loccampus;
