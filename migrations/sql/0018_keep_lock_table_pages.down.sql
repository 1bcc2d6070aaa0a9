-- Lets autovacuum cut the table again. No record is lost.
ALTER TABLE check_out_lock RESET (vacuum_truncate);
