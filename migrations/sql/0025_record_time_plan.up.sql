-- record_time runs for each date of each loan that is written. PostgreSQL plans the body of an
-- SQL function anew for each statement, unless it can inline it, and this one casts with a
-- function that is not immutable. A PL/pgSQL function is planned once per session. The values
-- are the same, so the stored ones stay.
CREATE OR REPLACE FUNCTION record_time(text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN CASE WHEN $1 !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}.*)?$' THEN NULL
                WHEN $1 ~ 'T.*(Z|[+-][0-9]{2}:?[0-9]{2})$' THEN $1::timestamptz
                ELSE $1::timestamp AT TIME ZONE 'UTC' END;
END
$$;
