-- The schema of a tenant: the check-out lock, FOLIO's records, and what check-outs leave behind.
-- The file stands for the migrations 1 to 39 that were there before the first release. Its objects,
-- the order of their columns and the names of their constraints are those of these migrations.

-- 1. The check-out lock

-- One row per held check-out lock. The unique user_id is the mutual exclusion.
-- Every grant and takeover gets a new id and none is used twice, so the id is
-- also the fence that a commit must show.
--
-- timestamptz, not FOLIO's column without zone: there, sessions with different
-- time zones steal live locks or keep dead ones for hours.
--
-- The table is empty most of the time. An autovacuum that cuts it to no pages makes
-- the planner choose sequential scans, and connections keep such plans.
CREATE TABLE check_out_lock (
    id               uuid        NOT NULL DEFAULT gen_random_uuid(),
    user_id          uuid        NOT NULL,
    creation_date    timestamptz NOT NULL DEFAULT clock_timestamp(),
    ttl_ms           integer     NOT NULL,
    request_id       uuid,
    holder           text,
    okapi_request_id text,
    CONSTRAINT check_out_lock_pkey PRIMARY KEY (id),
    CONSTRAINT check_out_lock_user_id_key UNIQUE (user_id)
) WITH (vacuum_truncate = off);

COMMENT ON COLUMN check_out_lock.ttl_ms IS 'Time to live in milliseconds, as the holder asked for it.';
COMMENT ON COLUMN check_out_lock.request_id IS 'The acquire request that got the lock; a repeat of it gets the same lock.';
COMMENT ON COLUMN check_out_lock.holder IS 'The instance that asked for the lock, for whoever looks.';
COMMENT ON COLUMN check_out_lock.okapi_request_id IS 'X-Okapi-Request-Id of the call that got or last renewed the lock, for whoever looks.';

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

-- Says until when the lock is on because an instance's environment turns it on, for
-- a tenant whose own settings do not decide. NULL means that none does.
--
-- It is a table of its own and no column of lock_settings_version: check-outs share
-- that row all the time, and an instance that announces again must not wait for them.
-- on_until turns from NULL to a time and back only under the table lock of
-- lock_settings_version, together with a new version.
CREATE TABLE check_out_lock_environment (
    only_row boolean NOT NULL DEFAULT true,
    on_until timestamptz,
    CONSTRAINT check_out_lock_environment_pkey PRIMARY KEY (only_row),
    CONSTRAINT check_out_lock_environment_only_row_check CHECK (only_row)
);

COMMENT ON COLUMN check_out_lock_environment.on_until IS 'When the last announcement lapses; then an instance whose environment says off may end it.';

INSERT INTO check_out_lock_environment DEFAULT VALUES;

-- What people did to the check-out lock: who, when and why. A row is written in the
-- transaction of the change itself. before and after are the values of the tenant's
-- settings entry; the lock_ columns are the lock that was released by force.
CREATE TABLE check_out_lock_change (
    id                    uuid        NOT NULL DEFAULT gen_random_uuid(),
    changed_date          timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind                  text        NOT NULL,
    user_id               uuid,
    user_name             text,
    reason                text,
    request_id            text,
    before                jsonb,
    after                 jsonb,
    lock_id               uuid,
    lock_user_id          uuid,
    lock_creation_date    timestamptz,
    lock_ttl_ms           integer,
    lock_request_id       uuid,
    lock_holder           text,
    lock_outdated         boolean,
    lock_okapi_request_id text,
    CONSTRAINT check_out_lock_change_pkey PRIMARY KEY (id),
    CONSTRAINT check_out_lock_change_kind_check CHECK (kind IN ('settings', 'release')),
    CONSTRAINT check_out_lock_change_lock_check CHECK ((kind = 'release') = (lock_id IS NOT NULL))
);

COMMENT ON COLUMN check_out_lock_change.user_id IS 'Who did it, as the call said; the patron is in lock_user_id.';
COMMENT ON COLUMN check_out_lock_change.user_name IS 'Who did it, where there are names and no user ids.';
COMMENT ON COLUMN check_out_lock_change.lock_user_id IS 'The patron; removed when check-outs of that age are.';
COMMENT ON COLUMN check_out_lock_change.lock_okapi_request_id IS 'The check-out that had the lock; request_id is the call that released it.';

CREATE INDEX check_out_lock_change_changed_date_idx ON check_out_lock_change (changed_date DESC, id DESC);
CREATE INDEX check_out_lock_change_lock_user_id_idx ON check_out_lock_change (changed_date) WHERE lock_user_id IS NOT NULL;

-- 2. Functions of records

-- record_time reads a date as records hold it. A date without an offset is UTC. The
-- function is immutable although a cast to timestamptz is not: it casts only texts that
-- name their offset, and no setting changes how PostgreSQL reads those.
--
-- It is PL/pgSQL, because it runs for each date of each loan that is written. PostgreSQL
-- plans the body of an SQL function anew for each statement, unless it can inline it, and
-- a cast with a function that is not immutable prevents that. A PL/pgSQL function is
-- planned once per session.
CREATE FUNCTION record_time(text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN CASE WHEN $1 !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}.*)?$' THEN NULL
                WHEN $1 ~ 'T.*(Z|[+-][0-9]{2}:?[0-9]{2})$' THEN $1::timestamptz
                ELSE $1::timestamp AT TIME ZONE 'UTC' END;
END
$$;

-- A record that may name missing ones, or several, has a table of links: source_id names
-- target_id, which exists. Triggers fill it.
--
-- replace_links makes ids the links of a source, as far as they are ids of the target table.
-- It leaves links that stay: one that is deleted and written again deadlocks with a DELETE
-- of its target.
--
-- The search_path of functions is that of this migration, because the sessions of the service
-- have none.
CREATE FUNCTION replace_links(links text, target text, source uuid, ids uuid[]) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    EXECUTE format('DELETE FROM %I WHERE source_id = $1 AND target_id <> ALL ($2)', links) USING source, ids;
    EXECUTE format('INSERT INTO %I SELECT $1, id FROM %I WHERE id = ANY ($2) ORDER BY id ON CONFLICT DO NOTHING', links, target)
        USING source, ids;
END
$$;

-- link_record links a record to the ids at a path. Its arguments are the table of links, its
-- target and the path.
CREATE FUNCTION link_record() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM replace_links(TG_ARGV[0], TG_ARGV[1], NEW.id,
        ARRAY (SELECT (v #>> '{}')::uuid FROM jsonb_path_query(NEW.jsonb, TG_ARGV[2]::jsonpath) AS v));
    RETURN NULL;
END
$$;

-- 3. Patrons
--
-- From here on: FOLIO's records. A table per type has the whole JSON, and a generated column
-- for what must be unique, referenced or found fast. Barcodes and names are compared without
-- regard to case, as FOLIO does.
--
-- Records that others name cannot be deleted, and nothing new names a missing record where
-- FOLIO refuses that. NOT VALID leaves old rows that name one: schemas that were installed
-- before a constraint may have some.
--
-- A DELETE finds what names the record through an index. Items have none for their material type
-- and their permanent loan type: each check-out writes its item, and would write these indexes
-- too. The tables of locations and loan policies are small.

CREATE TABLE usergroup (
    id    uuid  NOT NULL CONSTRAINT usergroup_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX usergroup_group_key ON usergroup (lower(jsonb->>'group'));

CREATE TABLE users (
    id           uuid  NOT NULL CONSTRAINT users_pkey PRIMARY KEY,
    jsonb        jsonb NOT NULL,
    patron_group uuid  GENERATED ALWAYS AS ((jsonb->>'patronGroup')::uuid) STORED
        CONSTRAINT users_patron_group_fkey REFERENCES usergroup
);
CREATE UNIQUE INDEX users_username_key ON users (lower(jsonb->>'username'));
CREATE UNIQUE INDEX users_barcode_key ON users (lower(jsonb->>'barcode'));
CREATE UNIQUE INDEX users_external_system_id_key ON users (lower(jsonb->>'externalSystemId'));
CREATE INDEX users_patron_group_idx ON users (patron_group);

-- Texts, because what was stored before the fields were checked may be no UUID.
CREATE FUNCTION user_address_types(jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY (SELECT lower(v #>> '{}') FROM jsonb_path_query($1, '$.personal.addresses[*].addressTypeId') AS v);
END
$$;
CREATE INDEX users_address_types_idx ON users USING gin (user_address_types(jsonb));

-- Who may borrow for whom.
CREATE TABLE proxyfor (
    id            uuid  NOT NULL CONSTRAINT proxyfor_pkey PRIMARY KEY,
    jsonb         jsonb NOT NULL,
    user_id       uuid  GENERATED ALWAYS AS ((jsonb->>'userId')::uuid) STORED,
    proxy_user_id uuid  GENERATED ALWAYS AS ((jsonb->>'proxyUserId')::uuid) STORED
);
CREATE UNIQUE INDEX proxyfor_user_id_proxy_user_id_key ON proxyfor (user_id, proxy_user_id);
CREATE INDEX proxyfor_proxy_user_id_idx ON proxyfor (proxy_user_id);

-- Blocks that staff put on a patron.
CREATE TABLE manualblocks (
    id      uuid  NOT NULL CONSTRAINT manualblocks_pkey PRIMARY KEY,
    jsonb   jsonb NOT NULL,
    user_id uuid  GENERATED ALWAYS AS ((jsonb->>'userId')::uuid) STORED
);
CREATE INDEX manualblocks_user_id_idx ON manualblocks (user_id);

-- Blocks that follow from what a patron owes and has on loan: one list for each
-- patron who has one.
CREATE TABLE automated_patron_blocks (
    user_id uuid  NOT NULL CONSTRAINT automated_patron_blocks_pkey PRIMARY KEY,
    jsonb   jsonb NOT NULL
);

-- What blocks the patrons of a group: limits, each for one condition. Any number of
-- limits may name a group and a condition.
CREATE TABLE patron_block_conditions (
    id    uuid  NOT NULL CONSTRAINT patron_block_conditions_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE TABLE patron_block_limits (
    id              uuid  NOT NULL CONSTRAINT patron_block_limits_pkey PRIMARY KEY,
    jsonb           jsonb NOT NULL,
    patron_group_id uuid  GENERATED ALWAYS AS ((jsonb->>'patronGroupId')::uuid) STORED,
    condition_id    uuid  GENERATED ALWAYS AS ((jsonb->>'conditionId')::uuid) STORED
        CONSTRAINT patron_block_limits_condition_id_fkey REFERENCES patron_block_conditions (id)
);
CREATE INDEX patron_block_limits_patron_group_id_idx ON patron_block_limits (patron_group_id);
CREATE INDEX patron_block_limits_condition_id_idx ON patron_block_limits (condition_id);

CREATE TABLE user_request_preference (
    id      uuid  NOT NULL CONSTRAINT user_request_preference_pkey PRIMARY KEY,
    jsonb   jsonb NOT NULL,
    user_id uuid  GENERATED ALWAYS AS ((jsonb->>'userId')::uuid) STORED
        CONSTRAINT user_request_preference_user_id_key UNIQUE
);

-- 4. Places

CREATE TABLE service_point (
    id    uuid  NOT NULL CONSTRAINT service_point_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX service_point_name_key ON service_point (lower(jsonb->>'name'));
CREATE UNIQUE INDEX service_point_code_key ON service_point (lower(jsonb->>'code'));

CREATE TABLE locinstitution (
    id    uuid  NOT NULL CONSTRAINT locinstitution_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX locinstitution_name_key ON locinstitution (lower(jsonb->>'name'));

CREATE TABLE loccampus (
    id             uuid  NOT NULL CONSTRAINT loccampus_pkey PRIMARY KEY,
    jsonb          jsonb NOT NULL,
    institution_id uuid  GENERATED ALWAYS AS ((jsonb->>'institutionId')::uuid) STORED
        CONSTRAINT loccampus_institution_id_fkey REFERENCES locinstitution
);
CREATE UNIQUE INDEX loccampus_name_key ON loccampus (lower(jsonb->>'name'));
CREATE INDEX loccampus_institution_id_idx ON loccampus (institution_id);

CREATE TABLE loclibrary (
    id        uuid  NOT NULL CONSTRAINT loclibrary_pkey PRIMARY KEY,
    jsonb     jsonb NOT NULL,
    campus_id uuid  GENERATED ALWAYS AS ((jsonb->>'campusId')::uuid) STORED
        CONSTRAINT loclibrary_campus_id_fkey REFERENCES loccampus
);
CREATE UNIQUE INDEX loclibrary_name_key ON loclibrary (lower(jsonb->>'name'));
CREATE INDEX loclibrary_campus_id_idx ON loclibrary (campus_id);

CREATE TABLE location (
    id             uuid  NOT NULL CONSTRAINT location_pkey PRIMARY KEY,
    jsonb          jsonb NOT NULL,
    institution_id uuid  GENERATED ALWAYS AS ((jsonb->>'institutionId')::uuid) STORED,
    campus_id      uuid  GENERATED ALWAYS AS ((jsonb->>'campusId')::uuid) STORED,
    library_id     uuid  GENERATED ALWAYS AS ((jsonb->>'libraryId')::uuid) STORED
);
ALTER TABLE location
    ADD CONSTRAINT location_institution_id_fkey FOREIGN KEY (institution_id) REFERENCES locinstitution NOT VALID,
    ADD CONSTRAINT location_campus_id_fkey FOREIGN KEY (campus_id) REFERENCES loccampus NOT VALID,
    ADD CONSTRAINT location_library_id_fkey FOREIGN KEY (library_id) REFERENCES loclibrary NOT VALID;
CREATE UNIQUE INDEX location_name_key ON location (lower(jsonb->>'name'));
CREATE UNIQUE INDEX location_code_key ON location (lower(jsonb->>'code'));

CREATE TABLE location_primary_service_point (
    source_id uuid NOT NULL CONSTRAINT location_primary_service_point_source_id_fkey REFERENCES location ON DELETE CASCADE,
    target_id uuid NOT NULL CONSTRAINT location_primary_service_point_fkey REFERENCES service_point,
    CONSTRAINT location_primary_service_point_pkey PRIMARY KEY (source_id, target_id)
);
CREATE INDEX location_primary_service_point_target_id_idx ON location_primary_service_point (target_id);

CREATE TABLE location_service_point_ids (
    source_id uuid NOT NULL CONSTRAINT location_service_point_ids_source_id_fkey REFERENCES location ON DELETE CASCADE,
    target_id uuid NOT NULL CONSTRAINT location_service_point_ids_fkey REFERENCES service_point,
    CONSTRAINT location_service_point_ids_pkey PRIMARY KEY (source_id, target_id)
);
CREATE INDEX location_service_point_ids_target_id_idx ON location_service_point_ids (target_id);

CREATE TRIGGER location_service_point_ids AFTER INSERT OR UPDATE ON location
    FOR EACH ROW EXECUTE FUNCTION link_record('location_service_point_ids', 'service_point', '$.servicePointIds[*]');
CREATE TRIGGER location_primary_service_point AFTER INSERT OR UPDATE ON location
    FOR EACH ROW EXECUTE FUNCTION link_record('location_primary_service_point', 'service_point', '$.primaryServicePoint');

-- 5. Titles and items

CREATE TABLE material_type (
    id    uuid  NOT NULL CONSTRAINT material_type_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX material_type_name_key ON material_type (lower(jsonb->>'name'));

CREATE TABLE loan_type (
    id    uuid  NOT NULL CONSTRAINT loan_type_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX loan_type_name_key ON loan_type (lower(jsonb->>'name'));

CREATE TABLE instance (
    id    uuid  NOT NULL CONSTRAINT instance_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX instance_hrid_key ON instance (lower(jsonb->>'hrid'));

CREATE TABLE holdings_record (
    id                    uuid  NOT NULL CONSTRAINT holdings_record_pkey PRIMARY KEY,
    jsonb                 jsonb NOT NULL,
    instance_id           uuid  GENERATED ALWAYS AS ((jsonb->>'instanceId')::uuid) STORED
        CONSTRAINT holdings_record_instance_id_fkey REFERENCES instance,
    permanent_location_id uuid  GENERATED ALWAYS AS ((jsonb->>'permanentLocationId')::uuid) STORED
        CONSTRAINT holdings_record_permanent_location_id_fkey REFERENCES location,
    temporary_location_id uuid  GENERATED ALWAYS AS ((jsonb->>'temporaryLocationId')::uuid) STORED
        CONSTRAINT holdings_record_temporary_location_id_fkey REFERENCES location
);
CREATE UNIQUE INDEX holdings_record_hrid_key ON holdings_record (lower(jsonb->>'hrid'));
CREATE INDEX holdings_record_instance_id_idx ON holdings_record (instance_id);
CREATE INDEX holdings_record_permanent_location_id_idx ON holdings_record (permanent_location_id);
CREATE INDEX holdings_record_temporary_location_id_idx ON holdings_record (temporary_location_id) WHERE temporary_location_id IS NOT NULL;

CREATE TABLE item (
    id                     uuid  NOT NULL CONSTRAINT item_pkey PRIMARY KEY,
    jsonb                  jsonb NOT NULL,
    holdings_record_id     uuid  GENERATED ALWAYS AS ((jsonb->>'holdingsRecordId')::uuid) STORED
        CONSTRAINT item_holdings_record_id_fkey REFERENCES holdings_record,
    material_type_id       uuid  GENERATED ALWAYS AS ((jsonb->>'materialTypeId')::uuid) STORED
        CONSTRAINT item_material_type_id_fkey REFERENCES material_type,
    permanent_loan_type_id uuid  GENERATED ALWAYS AS ((jsonb->>'permanentLoanTypeId')::uuid) STORED
        CONSTRAINT item_permanent_loan_type_id_fkey REFERENCES loan_type,
    temporary_loan_type_id uuid  GENERATED ALWAYS AS ((jsonb->>'temporaryLoanTypeId')::uuid) STORED
        CONSTRAINT item_temporary_loan_type_id_fkey REFERENCES loan_type,
    permanent_location_id  uuid  GENERATED ALWAYS AS ((jsonb->>'permanentLocationId')::uuid) STORED
        CONSTRAINT item_permanent_location_id_fkey REFERENCES location,
    temporary_location_id  uuid  GENERATED ALWAYS AS ((jsonb->>'temporaryLocationId')::uuid) STORED
        CONSTRAINT item_temporary_location_id_fkey REFERENCES location
);
CREATE UNIQUE INDEX item_barcode_key ON item (lower(jsonb->>'barcode'));
CREATE UNIQUE INDEX item_hrid_key ON item (lower(jsonb->>'hrid'));
CREATE INDEX item_holdings_record_id_idx ON item (holdings_record_id);
CREATE INDEX item_temporary_loan_type_id_idx ON item (temporary_loan_type_id) WHERE temporary_loan_type_id IS NOT NULL;
CREATE INDEX item_permanent_location_id_idx ON item (permanent_location_id) WHERE permanent_location_id IS NOT NULL;
CREATE INDEX item_temporary_location_id_idx ON item (temporary_location_id) WHERE temporary_location_id IS NOT NULL;

-- 6. Policies and rules

CREATE TABLE fixed_due_date_schedule (
    id    uuid  NOT NULL CONSTRAINT fixed_due_date_schedule_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX fixed_due_date_schedule_name_key ON fixed_due_date_schedule (lower(jsonb->>'name'));

CREATE TABLE loan_policy (
    id                                   uuid  NOT NULL CONSTRAINT loan_policy_pkey PRIMARY KEY,
    jsonb                                jsonb NOT NULL,
    fixed_due_date_schedule_id           uuid
        GENERATED ALWAYS AS ((jsonb->'loansPolicy'->>'fixedDueDateScheduleId')::uuid) STORED,
    alternate_fixed_due_date_schedule_id uuid
        GENERATED ALWAYS AS ((jsonb->'renewalsPolicy'->>'alternateFixedDueDateScheduleId')::uuid) STORED
);
ALTER TABLE loan_policy
    ADD CONSTRAINT loan_policy_fixed_due_date_schedule_id_fkey
        FOREIGN KEY (fixed_due_date_schedule_id) REFERENCES fixed_due_date_schedule NOT VALID,
    ADD CONSTRAINT loan_policy_alternate_fixed_due_date_schedule_id_fkey
        FOREIGN KEY (alternate_fixed_due_date_schedule_id) REFERENCES fixed_due_date_schedule NOT VALID;
CREATE UNIQUE INDEX loan_policy_name_key ON loan_policy (lower(jsonb->>'name'));

CREATE TABLE patron_notice_policy (
    id    uuid  NOT NULL CONSTRAINT patron_notice_policy_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX patron_notice_policy_name_key ON patron_notice_policy (lower(jsonb->>'name'));

CREATE TABLE request_policy (
    id    uuid  NOT NULL CONSTRAINT request_policy_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX request_policy_name_key ON request_policy (lower(jsonb->>'name'));

-- A service point that is deleted, or is no pickup location any more, leaves the request policies that
-- allow it, as in FOLIO. So nothing keeps it from being deleted. A list that becomes empty allows none.
CREATE FUNCTION disallow_service_point() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE request_policy p SET jsonb = jsonb_set(p.jsonb, '{allowedServicePoints}', (
        SELECT jsonb_object_agg(key, CASE jsonb_typeof(value) WHEN 'array' THEN
               (SELECT coalesce(jsonb_agg(v ORDER BY place), '[]')
                  FROM jsonb_array_elements(value) WITH ORDINALITY AS list(v, place) WHERE lower(v #>> '{}') <> OLD.id::text)
               ELSE value END)
          FROM jsonb_each(p.jsonb->'allowedServicePoints')))
     WHERE jsonb_typeof(p.jsonb->'allowedServicePoints') = 'object' AND lower(p.jsonb->>'allowedServicePoints') LIKE '%' || OLD.id || '%';
    RETURN NULL;
END
$$;
CREATE TRIGGER service_point_deleted AFTER DELETE ON service_point
    FOR EACH ROW EXECUTE FUNCTION disallow_service_point();
CREATE TRIGGER service_point_without_pickup AFTER UPDATE ON service_point
    FOR EACH ROW WHEN (NEW.jsonb->'pickupLocation' IS DISTINCT FROM 'true') EXECUTE FUNCTION disallow_service_point();

-- One text per tenant.
CREATE TABLE circulation_rules (
    only_row boolean NOT NULL DEFAULT true,
    id       uuid    NOT NULL DEFAULT gen_random_uuid(),
    rules    text    NOT NULL DEFAULT '',
    -- The dates and users of the first and the last write. NULL means that they are not known.
    metadata jsonb,
    CONSTRAINT circulation_rules_pkey PRIMARY KEY (only_row),
    CONSTRAINT circulation_rules_only_row_check CHECK (only_row)
);
INSERT INTO circulation_rules DEFAULT VALUES;

CREATE TABLE circulation_rules_loan_policies (
    source_id uuid NOT NULL,
    target_id uuid NOT NULL CONSTRAINT circulation_rules_loan_policies_fkey REFERENCES loan_policy,
    CONSTRAINT circulation_rules_loan_policies_pkey PRIMARY KEY (source_id, target_id)
);
CREATE TABLE circulation_rules_request_policies (
    source_id uuid NOT NULL,
    target_id uuid NOT NULL CONSTRAINT circulation_rules_request_policies_fkey REFERENCES request_policy,
    CONSTRAINT circulation_rules_request_policies_pkey PRIMARY KEY (source_id, target_id)
);
CREATE TABLE circulation_rules_notice_policies (
    source_id uuid NOT NULL,
    target_id uuid NOT NULL CONSTRAINT circulation_rules_notice_policies_fkey REFERENCES patron_notice_policy,
    CONSTRAINT circulation_rules_notice_policies_pkey PRIMARY KEY (source_id, target_id)
);

-- rule_policies reads the ids behind the letter of a kind of policy, without comments.
CREATE FUNCTION rule_policies(rules text, letter text) RETURNS uuid[] LANGUAGE sql IMMUTABLE AS $$
SELECT ARRAY (SELECT DISTINCT m[1]::uuid
    FROM regexp_matches(regexp_replace(rules, '[#/][^\r\n]*', '', 'g'), '(?<![0-9a-zA-Z-])' || letter ||
        ' +([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?![0-9a-zA-Z-])', 'g') AS m)
$$;

CREATE FUNCTION link_rules() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM replace_links('circulation_rules_loan_policies', 'loan_policy', NEW.id, rule_policies(NEW.rules, 'l'));
    PERFORM replace_links('circulation_rules_request_policies', 'request_policy', NEW.id, rule_policies(NEW.rules, 'r'));
    PERFORM replace_links('circulation_rules_notice_policies', 'patron_notice_policy', NEW.id, rule_policies(NEW.rules, 'n'));
    RETURN NULL;
END
$$;
CREATE TRIGGER circulation_rules_policies AFTER INSERT OR UPDATE ON circulation_rules
    FOR EACH ROW EXECUTE FUNCTION link_rules();

-- 7. Settings

-- FOLIO's mod-settings entries. An entry without a user is the tenant's.
CREATE TABLE settings_entry (
    id    uuid  NOT NULL CONSTRAINT settings_entry_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX settings_entry_scope_key_user_id_key
    ON settings_entry ((jsonb->>'scope'), (jsonb->>'key'), coalesce(jsonb->>'userId', ''));
CREATE INDEX settings_entry_scope_key_idx ON settings_entry (lower(jsonb->>'scope'), lower(jsonb->>'key')); -- as CQL compares

CREATE TABLE circulation_settings (
    id    uuid  NOT NULL CONSTRAINT circulation_settings_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX circulation_settings_name_key ON circulation_settings (lower(jsonb->>'name'));

-- Commits of requests share this table, and writers of circulation settings lock it. It has no rows:
-- a setting that does not exist has no row to lock either, and VACUUM has nothing to do here.
CREATE TABLE title_setting_fence ();

CREATE FUNCTION fence_title_setting() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    LOCK TABLE title_setting_fence IN EXCLUSIVE MODE;
    RETURN NULL;
END
$$;
CREATE TRIGGER circulation_settings_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON circulation_settings
    FOR EACH STATEMENT EXECUTE FUNCTION fence_title_setting();

-- 8. Loans

-- A loan outlives its patron and its item, so it references neither.
CREATE TABLE loan (
    id        uuid        NOT NULL CONSTRAINT loan_pkey PRIMARY KEY,
    jsonb     jsonb       NOT NULL,
    user_id   uuid        GENERATED ALWAYS AS ((jsonb->>'userId')::uuid) STORED,
    item_id   uuid        GENERATED ALWAYS AS ((jsonb->>'itemId')::uuid) STORED,
    is_open   boolean     GENERATED ALWAYS AS (coalesce(jsonb->'status'->>'name' = 'Open', false)) STORED,
    loan_date timestamptz GENERATED ALWAYS AS (record_time(jsonb->>'loanDate')) STORED,
    due_date  timestamptz GENERATED ALWAYS AS (record_time(jsonb->>'dueDate')) STORED
);
CREATE UNIQUE INDEX loan_open_item_id_key ON loan (item_id) WHERE is_open;
CREATE INDEX loan_open_user_id_idx ON loan (user_id) WHERE is_open;
-- With the status, because FOLIO's modules ask for userId and status.name together
-- and a patron's closed loans may be many.
CREATE INDEX loan_user_id_idx ON loan (user_id, lower(jsonb->'status'->>'name'));
CREATE INDEX loan_item_id_idx ON loan (item_id, lower(jsonb->'status'->>'name'));
-- Lists of loans in the order of their dates read an index instead of all loans.
CREATE INDEX loan_loan_date_idx ON loan (loan_date, id);
CREATE INDEX loan_due_date_idx ON loan (due_date, id);
-- For lists of open loans, and of those that are overdue.
CREATE INDEX loan_status_due_date_idx ON loan (lower(jsonb->'status'->>'name'), due_date);

-- What each write made of a loan. A trigger writes it, so no write of a loan can leave it out, and
-- both are one transaction. A loan's history outlives the loan, and ends with the action "deleted",
-- as in FOLIO.
CREATE TABLE loan_history (
    id      uuid  NOT NULL CONSTRAINT loan_history_pkey PRIMARY KEY,
    jsonb   jsonb NOT NULL,
    loan_id uuid  GENERATED ALWAYS AS ((jsonb->'loan'->>'id')::uuid) STORED
);
CREATE INDEX loan_history_loan_id_idx ON loan_history (loan_id);
-- Old entries are found without a scan.
CREATE INDEX loan_history_created_date_idx ON loan_history (record_time(jsonb->>'createdDate'));

-- When the patron is taken off a loan, the loan's history loses the patron too, in the same
-- transaction. A proxy is a patron as well.
CREATE FUNCTION add_loan_history() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    new_id uuid := gen_random_uuid();
    written jsonb := CASE WHEN TG_OP = 'DELETE' THEN jsonb_set(OLD.jsonb, '{action}', '"deleted"', false) ELSE NEW.jsonb END;
BEGIN
    INSERT INTO loan_history (id, jsonb) VALUES (new_id, jsonb_build_object(
        'id', new_id, 'operation', left(TG_OP, 1), 'loan', written,
        'createdDate', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')));
    IF NOT written ? 'userId' THEN
        UPDATE loan_history SET jsonb = jsonb #- '{loan,userId}' #- '{loan,proxyUserId}'
         WHERE loan_id = (written->>'id')::uuid AND jsonb->'loan' ?| ARRAY['userId', 'proxyUserId'];
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER loan_history AFTER INSERT OR UPDATE OR DELETE ON loan FOR EACH ROW EXECUTE FUNCTION add_loan_history();

-- The changes of loans of the last day, so that one that is sent again is recognised. The loan is
-- not referenced: it can be deleted while a change still names it.
CREATE TABLE loan_change (
    id           uuid        NOT NULL CONSTRAINT loan_change_pkey PRIMARY KEY,
    loan_id      uuid        NOT NULL,
    created_date timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN loan_change.id IS 'Chosen by the caller, the same for all tries of one change.';

CREATE INDEX loan_change_created_date_idx ON loan_change (created_date);

-- The check-ins of the last day and what they were answered, so that one that is
-- sent again is answered like the first. Item and loan are not referenced: they can
-- be deleted while a check-in still names them.
CREATE TABLE check_in (
    id           uuid        NOT NULL CONSTRAINT check_in_pkey PRIMARY KEY,
    item_id      uuid        NOT NULL,
    item         text        NOT NULL,
    loan         text,
    created_date timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN check_in.id IS 'Chosen by the caller, the same for all tries of one check-in.';
COMMENT ON COLUMN check_in.item IS 'The answered item: JSON, but text, to be given again word for word.';
COMMENT ON COLUMN check_in.loan IS 'The answered loan, as item; null when the item was not on loan.';

CREATE INDEX check_in_created_date_idx ON check_in (created_date);

-- What a patron borrowed or returned since the last notice was sent. The loan is
-- not referenced: it can be deleted while a session still names it.
CREATE TABLE patron_action_session (
    id        uuid  NOT NULL CONSTRAINT patron_action_session_pkey PRIMARY KEY,
    jsonb     jsonb NOT NULL,
    patron_id uuid  GENERATED ALWAYS AS ((jsonb->>'patronId')::uuid) STORED,
    loan_id   uuid  GENERATED ALWAYS AS ((jsonb->>'loanId')::uuid) STORED
);
-- Says also whether a record is the last one of its session.
CREATE INDEX patron_action_session_patron_id_idx ON patron_action_session
    (patron_id, (jsonb->>'actionType'), record_time(jsonb#>>'{metadata,createdDate}'), id);
CREATE INDEX patron_action_session_loan_id_idx ON patron_action_session (loan_id);
-- Sessions that a desk left open are found from the oldest record on, without a scan.
CREATE INDEX patron_action_session_created_date_idx ON patron_action_session (record_time(jsonb#>>'{metadata,createdDate}'));

-- 9. Requests

CREATE TABLE cancellation_reason (
    id    uuid  NOT NULL CONSTRAINT cancellation_reason_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX cancellation_reason_name_key ON cancellation_reason (lower(jsonb->>'name'));

-- A request outlives its patron, its item and its title, so it references none.
-- The columns are what the commit of a check-out and FOLIO's modules look for.
CREATE TABLE request (
    id                     uuid    NOT NULL CONSTRAINT request_pkey PRIMARY KEY,
    jsonb                  jsonb   NOT NULL,
    item_id                uuid    GENERATED ALWAYS AS ((jsonb->>'itemId')::uuid) STORED,
    instance_id            uuid    GENERATED ALWAYS AS ((jsonb->>'instanceId')::uuid) STORED,
    requester_id           uuid    GENERATED ALWAYS AS ((jsonb->>'requesterId')::uuid) STORED,
    status                 text    GENERATED ALWAYS AS (jsonb->>'status') STORED,
    is_open                boolean GENERATED ALWAYS AS (coalesce(left(jsonb->>'status', 7) = 'Open - ', false)) STORED,
    position               integer GENERATED ALWAYS AS ((jsonb->>'position')::integer) STORED,
    -- NULL unless the request is open: those that are closed take no place.
    queue_position         integer GENERATED ALWAYS AS (
        CASE WHEN left(jsonb->>'status', 7) = 'Open - ' THEN (jsonb->>'position')::integer END) STORED,
    cancellation_reason_id uuid    GENERATED ALWAYS AS ((jsonb->>'cancellationReasonId')::uuid) STORED,
    -- Checked at the end of a statement, or later where a transaction defers it, so
    -- that the requests of a queue can change places.
    CONSTRAINT request_item_id_position_key UNIQUE (item_id, queue_position) DEFERRABLE INITIALLY IMMEDIATE
);
ALTER TABLE request
    ADD CONSTRAINT request_cancellation_reason_id_fkey FOREIGN KEY (cancellation_reason_id) REFERENCES cancellation_reason NOT VALID;
CREATE INDEX request_open_instance_id_idx ON request (instance_id, queue_position) WHERE is_open;
CREATE INDEX request_item_id_idx ON request (item_id, lower(status)); -- as CQL compares
CREATE INDEX request_instance_id_idx ON request (instance_id, lower(status));
CREATE INDEX request_requester_id_idx ON request (requester_id, lower(status));
CREATE INDEX request_cancellation_reason_id_idx ON request (cancellation_reason_id) WHERE cancellation_reason_id IS NOT NULL;
CREATE INDEX request_delivery_address_type_id_idx ON request (lower(jsonb->>'deliveryAddressTypeId'))
    WHERE jsonb->>'deliveryAddressTypeId' IS NOT NULL;
-- The dates at which open requests expire, so that those in the past are found without a scan.
CREATE INDEX request_expiration_idx ON request (record_time(jsonb->>CASE status
    WHEN 'Open - Awaiting pickup' THEN 'holdShelfExpirationDate' ELSE 'requestExpirationDate' END)) WHERE is_open;

-- The changes of requests of the last day, so that one that is sent again is recognised. The request
-- is not referenced: a change may delete it.
CREATE TABLE request_change (
    id           uuid        NOT NULL CONSTRAINT request_change_pkey PRIMARY KEY,
    request_id   uuid        NOT NULL,
    created_date timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN request_change.id IS 'Chosen by the caller, the same for all tries of one change.';

CREATE INDEX request_change_created_date_idx ON request_change (created_date);

CREATE TABLE addresstype (
    id    uuid  NOT NULL CONSTRAINT addresstype_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX addresstype_address_type_key ON addresstype (lower(jsonb->>'addressType'));

-- Users and requests may name missing address types, as in FOLIO a request may. The trigger refuses
-- to delete a type that one of them has. It fails as a foreign key does. Its detail is the record and
-- one that names it.
CREATE FUNCTION refuse_named_address_type() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    named_by   uuid;
    constraint_name text := 'users_addresses_fkey';
BEGIN
    SELECT id INTO named_by FROM users WHERE user_address_types(jsonb) @> ARRAY[OLD.id::text] LIMIT 1;
    IF named_by IS NULL THEN
        constraint_name := 'request_delivery_address_type_id_fkey';
        SELECT id INTO named_by FROM request WHERE lower(jsonb->>'deliveryAddressTypeId') = OLD.id::text LIMIT 1;
    END IF;
    IF named_by IS NOT NULL THEN
        RAISE foreign_key_violation USING MESSAGE = 'the record is named', DETAIL = OLD.id || ' ' || named_by, CONSTRAINT = constraint_name;
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER addresstype_named BEFORE DELETE ON addresstype FOR EACH ROW EXECUTE FUNCTION refuse_named_address_type();

-- The trigger above needs no views. Earlier builds read these.
CREATE VIEW users_addresses AS
    SELECT u.id AS source_id, (v #>> '{}')::uuid AS target_id
      FROM users u, jsonb_path_query(u.jsonb, '$.personal.addresses[*].addressTypeId') AS v;
CREATE VIEW request_delivery_address_type_id AS
    SELECT id AS source_id, (jsonb->>'deliveryAddressTypeId')::uuid AS target_id FROM request;

CREATE TABLE staff_slips (
    id    uuid  NOT NULL CONSTRAINT staff_slips_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX staff_slips_name_key ON staff_slips (lower(jsonb->>'name'));

-- 10. Check-outs

-- What the Idempotency-Keys of check-outs stand for. One at a time works on a
-- check-out, by the claim it has. The loan's id is chosen with the key, so that each
-- process that finishes the check-out commits the same loan. Rows go after a day.
CREATE TABLE check_out_request (
    key          text        NOT NULL,
    body_hash    bytea       NOT NULL,
    loan_id      uuid        NOT NULL DEFAULT gen_random_uuid(),
    claim_id     uuid        NOT NULL,
    claimed_date timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_ms     integer     NOT NULL,
    holder       text,
    answer       text,
    CONSTRAINT check_out_request_pkey PRIMARY KEY (key),
    CONSTRAINT check_out_request_claim_id_key UNIQUE (claim_id)
);

COMMENT ON COLUMN check_out_request.claim_id IS 'New with every claim; a commit shows it, and only its holder may set the answer.';
COMMENT ON COLUMN check_out_request.claimed_date IS 'When it was claimed, renewed, given up or finished; a day later the row may go.';
COMMENT ON COLUMN check_out_request.lease_ms IS 'How long the claim lives from claimed_date on, in milliseconds; 0 was given up.';
COMMENT ON COLUMN check_out_request.holder IS 'The instance that has the claim, for whoever looks.';
COMMENT ON COLUMN check_out_request.answer IS 'JSON, but text, to be given again word for word.';

CREATE INDEX check_out_request_claimed_date_idx ON check_out_request (claimed_date);

-- How check-outs ended, so that staff can say why one was refused and how long
-- they wait. It is no ledger: entries come from circulation's memory some time
-- after the check-out, and the sweeper deletes them when they are old.
CREATE TABLE check_out_history (
    id               uuid        NOT NULL,
    ended_date       timestamptz NOT NULL,
    outcome          text        NOT NULL,
    code             text,
    reason           text,
    user_barcode     text,
    item_barcode     text,
    user_id          uuid,
    loan_id          uuid,
    service_point_id uuid,
    wait_ms          integer,
    took_ms          integer     NOT NULL,
    repeats          integer     NOT NULL,
    request_id       text,
    instance         text,
    CONSTRAINT check_out_history_pkey PRIMARY KEY (id)
);

COMMENT ON COLUMN check_out_history.ended_date IS 'When it ended by the clock of this database, in whole milliseconds as it is answered.';
COMMENT ON COLUMN check_out_history.wait_ms IS 'How long it waited for the patron''s lock; NULL when it asked for none.';
COMMENT ON COLUMN check_out_history.repeats IS 'How often its commit was sent again.';
COMMENT ON COLUMN check_out_history.instance IS 'The circulation instance that did it, for whoever looks.';

-- Each serves one way to search; all end with the date, in which pages are sorted.
CREATE INDEX check_out_history_ended_date_idx ON check_out_history (ended_date);
CREATE INDEX check_out_history_user_barcode_idx ON check_out_history (lower(user_barcode), ended_date);
CREATE INDEX check_out_history_item_barcode_idx ON check_out_history (lower(item_barcode), ended_date);
CREATE INDEX check_out_history_outcome_idx ON check_out_history (outcome, ended_date);
CREATE INDEX check_out_history_service_point_id_idx ON check_out_history (service_point_id, ended_date);

-- How many check-outs wait for a lock, as each instance of circulation said last.
CREATE TABLE check_out_waiting (
    holder        text        NOT NULL,
    waiting       integer     NOT NULL,
    reported_date timestamptz NOT NULL,
    CONSTRAINT check_out_waiting_pkey PRIMARY KEY (holder)
);

COMMENT ON COLUMN check_out_waiting.holder IS 'The instance; empty for those that do not give their name.';

-- What happened, written in the transaction that made it happen.
CREATE TABLE outbox (
    id            bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_pkey PRIMARY KEY,
    creation_date timestamptz NOT NULL DEFAULT clock_timestamp(),
    event_type    text        NOT NULL,
    payload       jsonb       NOT NULL
);
