-- Drops every limit of a patron group and every condition of the tenant.
DROP TABLE patron_block_limits;
DROP TABLE patron_block_conditions;
