-- Forgets who changed the lock settings and released locks by force, and why.
DROP TABLE check_out_lock_change;
