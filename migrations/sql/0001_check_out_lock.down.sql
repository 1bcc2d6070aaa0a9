-- Drops every held lock: run only with both services stopped.
DROP TABLE lock_settings_version;
DROP TABLE check_out_lock;
