-- Drops every fixed due date schedule of the tenant.
DROP TABLE fixed_due_date_schedule;
