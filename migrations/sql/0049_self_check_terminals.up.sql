-- The self-check machines that may log in, and what each may do.
--
-- The hash of the password has a column of its own. A trigger takes it out of the record, so
-- that nothing that reads records can show it. A record without one keeps the hash that is there.
CREATE TABLE self_check_terminal (
    id               uuid  NOT NULL CONSTRAINT self_check_terminal_pkey PRIMARY KEY,
    jsonb            jsonb NOT NULL,
    password_hash    text,
    service_point_id uuid  GENERATED ALWAYS AS ((jsonb->>'servicePointId')::uuid) STORED
        CONSTRAINT self_check_terminal_service_point_id_fkey REFERENCES service_point
);
CREATE UNIQUE INDEX self_check_terminal_login_key ON self_check_terminal (lower(jsonb->>'login'));
CREATE INDEX self_check_terminal_service_point_id_idx ON self_check_terminal (service_point_id);

CREATE FUNCTION take_password_hash() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.jsonb ? 'passwordHash' THEN
        NEW.password_hash = NEW.jsonb->>'passwordHash';
        NEW.jsonb = NEW.jsonb - 'passwordHash';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER self_check_terminal_password BEFORE INSERT OR UPDATE ON self_check_terminal
    FOR EACH ROW EXECUTE FUNCTION take_password_hash();
