-- Drops every institution of the tenant.
DROP TABLE locinstitution;
