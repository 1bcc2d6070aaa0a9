-- Destroys nothing but an index. The patrons that were taken off the history do not come back.
DROP INDEX loan_history_created_date_idx;
CREATE OR REPLACE FUNCTION add_loan_history() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    new_id uuid := gen_random_uuid();
    written jsonb := CASE WHEN TG_OP = 'DELETE' THEN jsonb_set(OLD.jsonb, '{action}', '"deleted"', false) ELSE NEW.jsonb END;
BEGIN
    INSERT INTO loan_history (id, jsonb) VALUES (new_id, jsonb_build_object(
        'id', new_id, 'operation', left(TG_OP, 1), 'loan', written,
        'createdDate', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')));
    RETURN NULL;
END
$$;
