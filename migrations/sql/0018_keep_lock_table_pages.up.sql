-- The lock table is empty most of the time. An autovacuum that cuts it to no pages
-- makes the planner choose sequential scans, and connections keep such plans.
ALTER TABLE check_out_lock SET (vacuum_truncate = off);
