-- Says until when the lock is on because an instance's environment turns it on, for
-- a tenant whose own settings do not decide. NULL means that none does.
--
-- It is a table of its own and no column of lock_settings_version: check-outs share
-- that row all the time, and an instance that announces again must not wait for them.
-- on_until turns from NULL to a time and back only under the table lock of
-- lock_settings_version, together with a new version. Instances of an earlier version
-- may work on.
CREATE TABLE check_out_lock_environment (
    only_row boolean NOT NULL DEFAULT true,
    on_until timestamptz,
    CONSTRAINT check_out_lock_environment_pkey PRIMARY KEY (only_row),
    CONSTRAINT check_out_lock_environment_only_row_check CHECK (only_row)
);

COMMENT ON COLUMN check_out_lock_environment.on_until IS 'When the last announcement lapses; then an instance whose environment says off may end it.';

INSERT INTO check_out_lock_environment DEFAULT VALUES;
