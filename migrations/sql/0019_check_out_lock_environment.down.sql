-- Forgets that an instance's environment turns the lock on. Run it only with storages
-- of this version stopped: they cannot read the lock settings without the table.
DROP TABLE check_out_lock_environment;
