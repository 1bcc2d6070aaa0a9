-- The outbox gets what FOLIO's modules publish: each record that is written or deleted, before and
-- after. Its rows so far were for no reader and go.
TRUNCATE outbox;
ALTER TABLE outbox
    -- The topic of a record's event, whose event_type is CREATED, UPDATED or DELETED. NULL for the other
    -- events.
    ADD COLUMN topic     text,
    ADD COLUMN record_id uuid,
    -- The patron whose events go in order; NULL for a record of no patron.
    ADD COLUMN patron_id uuid,
    ADD COLUMN old       jsonb,
    ADD COLUMN new       jsonb,
    ALTER COLUMN payload SET DEFAULT '{}';

-- The right of one process to deliver the tenant's events. The fence counts how often it changed hands.
CREATE TABLE outbox_lease (
    only_row    boolean     NOT NULL DEFAULT true CONSTRAINT outbox_lease_pkey PRIMARY KEY
        CONSTRAINT outbox_lease_only_row_check CHECK (only_row),
    holder      uuid,
    fence       bigint      NOT NULL DEFAULT 0,
    lease_until timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO outbox_lease DEFAULT VALUES;

-- Triggers write the events, so no write of a record can leave its event out. The functions name their
-- table with the schema, because a search_path of their own would be slow: see 0040.
DO $migration$
BEGIN
    EXECUTE replace($definition$
CREATE FUNCTION add_record_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.outbox (event_type, topic, record_id, patron_id, old, new) VALUES (
        CASE TG_OP WHEN 'INSERT' THEN 'CREATED' WHEN 'UPDATE' THEN 'UPDATED' ELSE 'DELETED' END,
        TG_ARGV[0], coalesce(NEW.id, OLD.id), (coalesce(NEW.jsonb->>TG_ARGV[1], OLD.jsonb->>TG_ARGV[1]))::uuid, OLD.jsonb, NEW.jsonb);
    RETURN NULL;
END
$$;
CREATE FUNCTION add_rules_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.outbox (event_type, topic, record_id, old, new) VALUES ('UPDATED', 'rules', NEW.id,
        jsonb_build_object('id', OLD.id, 'rulesAsText', OLD.rules, 'metadata', OLD.metadata),
        jsonb_build_object('id', NEW.id, 'rulesAsText', NEW.rules, 'metadata', NEW.metadata));
    RETURN NULL;
END
$$
$definition$, '{schema}', quote_ident(current_schema()));
END
$migration$;
CREATE TRIGGER record_event AFTER INSERT OR UPDATE OR DELETE ON loan
    FOR EACH ROW EXECUTE FUNCTION add_record_event('loan', 'userId');
CREATE TRIGGER record_event AFTER INSERT OR UPDATE OR DELETE ON request
    FOR EACH ROW EXECUTE FUNCTION add_record_event('request', 'requesterId');
CREATE TRIGGER record_event AFTER INSERT OR UPDATE OR DELETE ON check_in_operation
    FOR EACH ROW EXECUTE FUNCTION add_record_event('check-in', '');
CREATE TRIGGER record_event AFTER INSERT OR UPDATE OR DELETE ON circulation_settings
    FOR EACH ROW EXECUTE FUNCTION add_record_event('circulation-settings', '');
CREATE TRIGGER record_event AFTER UPDATE ON circulation_rules
    FOR EACH ROW EXECUTE FUNCTION add_rules_event();
