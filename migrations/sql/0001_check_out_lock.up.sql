-- One row per held check-out lock. The unique user_id is the mutual exclusion.
-- Every grant and takeover gets a new id and none is used twice, so the id is
-- also the fence that a commit must show.
--
-- timestamptz, not FOLIO's column without zone: there, sessions with different
-- time zones steal live locks or keep dead ones for hours.
CREATE TABLE check_out_lock (
    id            uuid        NOT NULL DEFAULT gen_random_uuid(),
    user_id       uuid        NOT NULL,
    creation_date timestamptz NOT NULL DEFAULT clock_timestamp(),
    ttl_ms        integer     NOT NULL,
    request_id    uuid,
    holder        text,
    CONSTRAINT check_out_lock_pkey PRIMARY KEY (id),
    CONSTRAINT check_out_lock_user_id_key UNIQUE (user_id)
);

COMMENT ON COLUMN check_out_lock.ttl_ms IS 'Time to live in milliseconds, as the holder asked for it.';
COMMENT ON COLUMN check_out_lock.request_id IS 'The acquire request that got the lock; a repeat of it gets the same lock.';
COMMENT ON COLUMN check_out_lock.holder IS 'The instance that asked for the lock, for whoever looks.';

-- The version of the tenant's lock settings: every change of them raises it, in
-- the transaction of the change. A check-out without a lock names the version it
-- acted on and reads this row FOR SHARE; the settings entry itself cannot serve,
-- because an entry that does not exist yet cannot be locked.
CREATE TABLE lock_settings_version (
    only_row boolean NOT NULL DEFAULT true,
    version  bigint  NOT NULL DEFAULT 1,
    CONSTRAINT lock_settings_version_pkey PRIMARY KEY (only_row),
    CONSTRAINT lock_settings_version_only_row_check CHECK (only_row)
);

INSERT INTO lock_settings_version DEFAULT VALUES;
