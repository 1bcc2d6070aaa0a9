-- Flat locks: the last lock of each key. A row stays after the end of its lock, so that
-- its holder can resume it, until a sweep forgets it.
--
-- A lock is live while ended_at is NULL and the clock is before expires_at. Renewals
-- change no indexed column but sweep_after, which changes once a minute. So most of them
-- are HOT updates, for which fillfactor leaves space.
--
-- Names are compared by their bytes.
CREATE SEQUENCE lock_fence;

CREATE TABLE lock (
    id          uuid        NOT NULL,
    fence       bigint      NOT NULL,
    granted_at  timestamptz NOT NULL,
    renewed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    sweep_after timestamptz NOT NULL,
    replaced    boolean     NOT NULL,
    namespace   text        COLLATE "C" NOT NULL,
    name        text        COLLATE "C" NOT NULL,
    owner       text        COLLATE "C" NOT NULL,
    kind        text        COLLATE "C" NOT NULL,
    value       text        NOT NULL,
    requests    jsonb,
    CONSTRAINT lock_pkey PRIMARY KEY (namespace, name)
) WITH (fillfactor = 70, vacuum_truncate = off);

CREATE INDEX lock_sweep_after_idx ON lock (sweep_after);

COMMENT ON COLUMN lock.fence IS 'From the sequence lock_fence, read under the lock of the row: it grows with each grant.';
COMMENT ON COLUMN lock.ended_at IS 'When the lock was released, or expired, once a sweep has counted that.';
COMMENT ON COLUMN lock.sweep_after IS 'When the next sweep looks at the row, in whole minutes.';
COMMENT ON COLUMN lock.replaced IS 'The grant replaced an outdated lock whose expiry no sweep had counted.';
COMMENT ON COLUMN lock.requests IS 'Who asked for the lock since its grant, oldest first.';

CREATE TABLE forced_release (
    id        bigint      GENERATED ALWAYS AS IDENTITY,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    fence     bigint      NOT NULL,
    namespace text        NOT NULL,
    name      text        NOT NULL,
    owner     text        NOT NULL,
    forced_by text        NOT NULL,
    reason    text        NOT NULL,
    CONSTRAINT forced_release_pkey PRIMARY KEY (id)
);

-- Claims of paths. An instance is a process that serves connections. The claims of an
-- instance live as long as its lease.
CREATE TABLE instance (
    id          uuid        NOT NULL,
    lease_until timestamptz NOT NULL,
    ended_at    timestamptz,
    CONSTRAINT instance_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50, vacuum_truncate = off);

COMMENT ON COLUMN instance.ended_at IS 'When the lease ended. A lease with this column is never extended.';

CREATE TABLE namespace (
    last_number bigint NOT NULL,
    name        text   COLLATE "C" NOT NULL,
    CONSTRAINT namespace_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50, vacuum_truncate = off);

CREATE TABLE claim (
    id        uuid        NOT NULL,
    instance  uuid        NOT NULL,
    number    bigint      NOT NULL,
    waits_for bigint,
    queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    held_at   timestamptz,
    ends_at   timestamptz,
    abandon   interval    NOT NULL,
    resources integer     NOT NULL,
    is_new    boolean     NOT NULL DEFAULT false,
    namespace text        COLLATE "C" NOT NULL,
    owner     text        NOT NULL,
    CONSTRAINT claim_pkey PRIMARY KEY (id),
    CONSTRAINT claim_number_key UNIQUE (namespace, number)
) WITH (fillfactor = 70, vacuum_truncate = off);

CREATE INDEX claim_waits_for_idx ON claim (namespace, waits_for) WHERE waits_for IS NOT NULL;
CREATE INDEX claim_instance_idx ON claim (instance);
CREATE INDEX claim_ends_at_idx ON claim (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX claim_is_new_idx ON claim (instance) WHERE is_new;

COMMENT ON COLUMN claim.waits_for IS 'The number of the latest earlier claim that conflicts; 0 within a transaction that looks for it; NULL once held.';
COMMENT ON COLUMN claim.ends_at IS 'Set when the connection of a held claim has ended.';
COMMENT ON COLUMN claim.is_new IS 'Granted by another instance; its own has not noted that yet.';

-- A path is its segments, each with a zero byte behind it. So a path begins with another
-- if its bytes do, and the paths below one are a range of the primary key.
CREATE TABLE claim_resource (
    number    bigint     NOT NULL,
    position  smallint   NOT NULL,
    write     boolean    NOT NULL,
    namespace text       COLLATE "C" NOT NULL,
    path      bytea      NOT NULL,
    cuts      smallint[] NOT NULL,
    CONSTRAINT claim_resource_pkey PRIMARY KEY (namespace, path, write, number)
) WITH (vacuum_truncate = off);

CREATE INDEX claim_resource_number_idx ON claim_resource (namespace, number);

COMMENT ON COLUMN claim_resource.cuts IS 'The lengths of the paths that this one begins with, from the root to itself.';

-- These tables are small most of the time. The planner would choose sequential scans for
-- few pages, and connections keep such plans when a table grows. The pages of these rows
-- stay, because vacuum does not truncate.
INSERT INTO lock SELECT gen_random_uuid(), 0, now(), now(), now(), now(), now(), false, '', n::text, '', '', repeat('x', 1500)
  FROM generate_series(1, 200) n;
DELETE FROM lock;
INSERT INTO claim SELECT gen_random_uuid(), gen_random_uuid(), n, NULL, now(), NULL, NULL, '0', 0, false, '', repeat('x', 1500)
  FROM generate_series(1, 200) n;
DELETE FROM claim;
INSERT INTO claim_resource SELECT n, 0, false, repeat('x', 1500), n::text::bytea, '{}' FROM generate_series(1, 200) n;
DELETE FROM claim_resource;
