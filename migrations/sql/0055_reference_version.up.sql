-- Circulation keeps reference records for a time. The version, which each check-out reads, says
-- whether they are still those that are stored. It is no number: after a failover that loses a
-- change, no other change makes the lost version again.
CREATE TABLE reference_version (
    only_row boolean NOT NULL DEFAULT true CONSTRAINT reference_version_pkey PRIMARY KEY,
    version  uuid    NOT NULL DEFAULT gen_random_uuid(),
    CONSTRAINT reference_version_only_row_check CHECK (only_row)
);
INSERT INTO reference_version DEFAULT VALUES;
COMMENT ON TABLE reference_version IS 'Changes with the records that circulation keeps.';

-- EXECUTE, because each session would keep the plan for each of the tables.
CREATE FUNCTION renew_reference_version() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    EXECUTE 'UPDATE reference_version SET version = gen_random_uuid()';
    RETURN NULL;
END
$$;

-- Circulation keeps the absence of rules and settings, but not that of other records. So a new one
-- of those changes nothing, and many can be loaded at once.
DO $$
DECLARE kept text;
BEGIN
    FOREACH kept IN ARRAY ARRAY['addresstype', 'circulation_rules', 'circulation_settings', 'fixed_due_date_schedule',
        'loan_policy', 'loan_type', 'location', 'loccampus', 'locinstitution', 'loclibrary', 'lost_item_fee_policy',
        'material_type', 'overdue_fine_policy', 'request_policy', 'self_check_terminal', 'service_point', 'usergroup']
    LOOP
        EXECUTE format('CREATE TRIGGER reference_version AFTER %s UPDATE OR DELETE OR TRUNCATE ON %I '
            'FOR EACH STATEMENT EXECUTE FUNCTION renew_reference_version()',
            CASE WHEN kept IN ('circulation_rules', 'circulation_settings') THEN 'INSERT OR' END, kept);
    END LOOP;
END
$$;
