-- Records that others name cannot be deleted, and nothing new names a missing record where
-- FOLIO refuses that. NOT VALID leaves the old rows that name one.

-- A record that may name missing ones, or several, has a table of links: source_id names
-- target_id, which exists. Triggers fill it.
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

-- replace_links makes ids the links of a source, as far as they are ids of the target table.
-- It leaves links that stay: one that is deleted and written again deadlocks with a DELETE
-- of its target.
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
CREATE TRIGGER location_service_point_ids AFTER INSERT OR UPDATE ON location
    FOR EACH ROW EXECUTE FUNCTION link_record('location_service_point_ids', 'service_point', '$.servicePointIds[*]');
CREATE TRIGGER location_primary_service_point AFTER INSERT OR UPDATE ON location
    FOR EACH ROW EXECUTE FUNCTION link_record('location_primary_service_point', 'service_point', '$.primaryServicePoint');

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

-- The triggers link what is named already.
UPDATE location SET jsonb = jsonb;
UPDATE circulation_rules SET rules = rules;

-- After the UPDATE, because foreign keys check again what their transaction wrote.
ALTER TABLE loan_policy
    ADD COLUMN fixed_due_date_schedule_id uuid
        GENERATED ALWAYS AS ((jsonb->'loansPolicy'->>'fixedDueDateScheduleId')::uuid) STORED,
    ADD COLUMN alternate_fixed_due_date_schedule_id uuid
        GENERATED ALWAYS AS ((jsonb->'renewalsPolicy'->>'alternateFixedDueDateScheduleId')::uuid) STORED,
    ADD CONSTRAINT loan_policy_fixed_due_date_schedule_id_fkey
        FOREIGN KEY (fixed_due_date_schedule_id) REFERENCES fixed_due_date_schedule NOT VALID,
    ADD CONSTRAINT loan_policy_alternate_fixed_due_date_schedule_id_fkey
        FOREIGN KEY (alternate_fixed_due_date_schedule_id) REFERENCES fixed_due_date_schedule NOT VALID;

ALTER TABLE location
    ADD COLUMN institution_id uuid GENERATED ALWAYS AS ((jsonb->>'institutionId')::uuid) STORED,
    ADD COLUMN campus_id uuid GENERATED ALWAYS AS ((jsonb->>'campusId')::uuid) STORED,
    ADD COLUMN library_id uuid GENERATED ALWAYS AS ((jsonb->>'libraryId')::uuid) STORED,
    ADD CONSTRAINT location_institution_id_fkey FOREIGN KEY (institution_id) REFERENCES locinstitution NOT VALID,
    ADD CONSTRAINT location_campus_id_fkey FOREIGN KEY (campus_id) REFERENCES loccampus NOT VALID,
    ADD CONSTRAINT location_library_id_fkey FOREIGN KEY (library_id) REFERENCES loclibrary NOT VALID;
