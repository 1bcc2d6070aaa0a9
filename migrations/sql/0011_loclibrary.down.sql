-- Drops every library of the tenant.
DROP TABLE loclibrary;
