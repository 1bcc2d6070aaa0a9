-- What each write made of a loan. A trigger writes it, so no write of a loan can leave it out, and
-- both are one transaction. A loan's history outlives the loan.
CREATE TABLE loan_history (
    id      uuid  NOT NULL CONSTRAINT loan_history_pkey PRIMARY KEY,
    jsonb   jsonb NOT NULL,
    loan_id uuid  GENERATED ALWAYS AS ((jsonb->'loan'->>'id')::uuid) STORED
);
CREATE INDEX loan_history_loan_id_idx ON loan_history (loan_id);

-- The search_path is that of this migration, because the sessions of the service have none.
CREATE FUNCTION add_loan_history() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    new_id uuid := gen_random_uuid();
    written jsonb := CASE WHEN TG_OP = 'DELETE' THEN OLD.jsonb ELSE NEW.jsonb END;
BEGIN
    INSERT INTO loan_history (id, jsonb) VALUES (new_id, jsonb_build_object(
        'id', new_id, 'operation', left(TG_OP, 1), 'loan', written,
        'createdDate', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')));
    RETURN NULL;
END
$$;
CREATE TRIGGER loan_history AFTER INSERT OR UPDATE OR DELETE ON loan FOR EACH ROW EXECUTE FUNCTION add_loan_history();
