-- Nothing is lost: loans are written with more work.

CREATE OR REPLACE FUNCTION record_time(text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN CASE WHEN $1 !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}.*)?$' THEN NULL
                WHEN $1 ~ 'T.*(Z|[+-][0-9]{2}:?[0-9]{2})$' THEN $1::timestamptz
                ELSE $1::timestamp AT TIME ZONE 'UTC' END;
END
$$;

CREATE OR REPLACE FUNCTION add_loan_history() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
