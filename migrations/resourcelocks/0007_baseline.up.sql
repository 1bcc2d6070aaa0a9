-- The schema of resource-locks: flat locks, and claims of paths. The file stands for the migrations
-- 1 to 7 that were there before the first release. Its objects, the order of their columns and the
-- names of their constraints are those of these migrations.

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
--
-- A lease that ends later than twice its length from now was kept before the clock was set back. A
-- lease without a length is judged by its end alone.
CREATE TABLE instance (
    id          uuid        NOT NULL,
    lease_until timestamptz NOT NULL,
    ended_at    timestamptz,
    lease       interval,
    CONSTRAINT instance_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50, vacuum_truncate = off);

COMMENT ON COLUMN instance.ended_at IS 'When the lease ended. A lease with this column is never extended.';
COMMENT ON COLUMN instance.lease IS 'The length of the lease, NULL if an older build began it.';

-- Namespaces that no client has used for a time are forgotten.
CREATE TABLE namespace (
    last_number bigint      NOT NULL,
    name        text        COLLATE "C" NOT NULL,
    used_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT namespace_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50, vacuum_truncate = off);

COMMENT ON COLUMN namespace.used_at IS 'When a claim was stored last, or a client connected, exact to an hour.';

-- The default of prefixes is that of builds which do not count.
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
    prefixes  integer     NOT NULL DEFAULT 64,
    CONSTRAINT claim_pkey PRIMARY KEY (id),
    CONSTRAINT claim_number_key UNIQUE (namespace, number)
) WITH (fillfactor = 70, vacuum_truncate = off);

CREATE INDEX claim_waits_for_idx ON claim (namespace, waits_for, number) WHERE waits_for IS NOT NULL;
-- The claims of an instance are read in pages, in the order of their ids.
CREATE INDEX claim_instance_id_idx ON claim (instance, id);
CREATE INDEX claim_ends_at_idx ON claim (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX claim_is_new_idx ON claim (instance) WHERE is_new;

COMMENT ON COLUMN claim.waits_for IS 'The number of the latest earlier claim that conflicts, present or in removed_claim; NULL once held.';
COMMENT ON COLUMN claim.ends_at IS 'Set when the connection of a held claim has ended.';
COMMENT ON COLUMN claim.is_new IS 'Granted by another instance; its own has not noted that yet.';
COMMENT ON COLUMN claim.prefixes IS 'How many paths its paths begin with: the work of placing it.';

-- One transaction places only some of the claims that waited for a removed one. The others wait for
-- its number until a later transaction has placed them.
CREATE TABLE removed_claim (
    number    bigint NOT NULL,
    namespace text   COLLATE "C" NOT NULL,
    CONSTRAINT removed_claim_pkey PRIMARY KEY (namespace, number)
);
COMMENT ON TABLE removed_claim IS 'Removed claims that others still wait for. Each settling places some of those.';

-- A path is its segments, each with a zero byte behind it.
--
-- Paths are compared by keys. A key has 16 bytes for each segment: a zero byte, then the first 15
-- bytes of the segment's SHA-256. So a path begins with another if its key does, the paths below one
-- are a range of an index, and the index fits paths of any length.
CREATE TABLE claim_resource (
    number    bigint     NOT NULL,
    position  smallint   NOT NULL,
    write     boolean    NOT NULL,
    namespace text       COLLATE "C" NOT NULL,
    path      bytea      NOT NULL,
    cuts      smallint[] NOT NULL,
    key       bytea      NOT NULL,
    CONSTRAINT claim_resource_pkey PRIMARY KEY (namespace, number, position)
) WITH (vacuum_truncate = off);

-- A read looks only at writes, so these are a range of their own.
CREATE INDEX claim_resource_key_idx ON claim_resource (namespace, write, key, number);

COMMENT ON COLUMN claim_resource.key IS 'For each segment a zero byte and the first 15 bytes of its SHA-256.';
COMMENT ON COLUMN claim_resource.cuts IS 'The lengths of the paths that this one begins with, for builds that store no key.';

-- Some builds store no key. The trigger makes it for them, from the first 64 segments. A deeper path
-- of theirs counts as the one that these are.
CREATE FUNCTION claim_resource_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.key := (
        SELECT coalesce(string_agg('\x00'::bytea || substring(sha256(
                   substring(NEW.path FROM NEW.cuts[i] + 1 FOR NEW.cuts[i + 1] - NEW.cuts[i] - 1)) FROM 1 FOR 15), ''::bytea ORDER BY i), ''::bytea)
          FROM generate_series(1, least(64, cardinality(NEW.cuts) - 1)) i);
    RETURN NEW;
END $$;

CREATE TRIGGER claim_resource_key BEFORE INSERT OR UPDATE ON claim_resource
    FOR EACH ROW WHEN (NEW.key IS NULL) EXECUTE FUNCTION claim_resource_key();

-- These tables are small most of the time. The planner would choose sequential scans for
-- few pages, and connections keep such plans when a table grows. The pages of these rows
-- stay, because vacuum does not truncate.
INSERT INTO lock SELECT gen_random_uuid(), 0, now(), now(), now(), now(), now(), false, '', n::text, '', '', repeat('x', 1500)
  FROM generate_series(1, 200) n;
DELETE FROM lock;
INSERT INTO claim (id, instance, number, abandon, resources, namespace, owner)
SELECT gen_random_uuid(), gen_random_uuid(), n, '0', 0, '', repeat('x', 1500) FROM generate_series(1, 200) n;
DELETE FROM claim;
INSERT INTO claim_resource SELECT n, 0, false, repeat('x', 1500), n::text::bytea, '{}', '' FROM generate_series(1, 200) n;
DELETE FROM claim_resource;

-- Statements keep the plans that connections made while no claim was stored. Statistics of an empty
-- table make all its indexes look alike. So some rows stay, with numbers below 0. Each has an
-- instance that no process has: a process without a lease asks for the claims of the instance 0.
INSERT INTO claim (id, instance, number, waits_for, abandon, resources, namespace, owner)
SELECT gen_random_uuid(), gen_random_uuid(), -n, -n - 1, '0', 1, '', '' FROM generate_series(1, 200) n;
INSERT INTO claim_resource (number, position, write, namespace, path, cuts, key)
SELECT -n, 0, n % 2 = 0, '', '', '{0}', (SELECT string_agg(sha256((n::text || i)::bytea), '') FROM generate_series(1, 32) i)
  FROM generate_series(1, 200) n;
