-- What people did to the check-out lock: who, when and why. A row is written in the
-- transaction of the change itself. before and after are the values of the tenant's
-- settings entry; the lock_ columns are the lock that was released by force.
CREATE TABLE check_out_lock_change (
    id                 uuid        NOT NULL DEFAULT gen_random_uuid(),
    changed_date       timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind               text        NOT NULL,
    user_id            uuid,
    user_name          text,
    reason             text,
    request_id         text,
    before             jsonb,
    after              jsonb,
    lock_id            uuid,
    lock_user_id       uuid,
    lock_creation_date timestamptz,
    lock_ttl_ms        integer,
    lock_request_id    uuid,
    lock_holder        text,
    lock_outdated      boolean,
    CONSTRAINT check_out_lock_change_pkey PRIMARY KEY (id),
    CONSTRAINT check_out_lock_change_kind_check CHECK (kind IN ('settings', 'release')),
    CONSTRAINT check_out_lock_change_lock_check CHECK ((kind = 'release') = (lock_id IS NOT NULL))
);

COMMENT ON COLUMN check_out_lock_change.user_id IS 'Who did it, as the call said; the patron is in lock_user_id.';
COMMENT ON COLUMN check_out_lock_change.user_name IS 'Who did it, where there are names and no user ids.';
COMMENT ON COLUMN check_out_lock_change.lock_user_id IS 'The patron; removed when check-outs of that age are.';

CREATE INDEX check_out_lock_change_changed_date_idx ON check_out_lock_change (changed_date DESC, id DESC);
CREATE INDEX check_out_lock_change_lock_user_id_idx ON check_out_lock_change (changed_date) WHERE lock_user_id IS NOT NULL;
