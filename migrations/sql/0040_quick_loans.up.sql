-- A loan is written with less work.

-- record_time reads the two forms that the services write without a regular expression. Other
-- forms are read as before, so no stored value and no index changes.
CREATE OR REPLACE FUNCTION record_time(text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN CASE WHEN $1 LIKE '____-__-__T__:__:__.___%' AND translate($1, '0123456789', '') IN ('--T::.+:', '--T::.Z') THEN $1::timestamptz
                WHEN $1 !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}.*)?$' THEN NULL
                WHEN $1 ~ 'T.*(Z|[+-][0-9]{2}:?[0-9]{2})$' THEN $1::timestamptz
                ELSE $1::timestamp AT TIME ZONE 'UTC' END;
END
$$;

-- add_loan_history names its table with the schema instead of setting the search_path. A function
-- that sets it makes PostgreSQL check every prepared statement of the session again.
DO $migration$
BEGIN
    EXECUTE replace($definition$
CREATE OR REPLACE FUNCTION add_loan_history() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    new_id uuid := gen_random_uuid();
    written jsonb := CASE WHEN TG_OP = 'DELETE' THEN jsonb_set(OLD.jsonb, '{action}', '"deleted"', false) ELSE NEW.jsonb END;
BEGIN
    INSERT INTO {schema}.loan_history (id, jsonb) VALUES (new_id, jsonb_build_object(
        'id', new_id, 'operation', left(TG_OP, 1), 'loan', written,
        'createdDate', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')));
    IF NOT written ? 'userId' THEN
        UPDATE {schema}.loan_history SET jsonb = jsonb #- '{loan,userId}' #- '{loan,proxyUserId}'
         WHERE loan_id = (written->>'id')::uuid AND jsonb->'loan' ?| ARRAY['userId', 'proxyUserId'];
    END IF;
    RETURN NULL;
END
$$
$definition$, '{schema}', quote_ident(current_schema()));
END
$migration$;
