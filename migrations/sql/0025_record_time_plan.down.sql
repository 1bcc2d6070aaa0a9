-- No data is lost: the values are the same.
CREATE OR REPLACE FUNCTION record_time(text) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
SELECT CASE WHEN $1 !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}.*)?$' THEN NULL
            WHEN $1 ~ 'T.*(Z|[+-][0-9]{2}:?[0-9]{2})$' THEN $1::timestamptz
            ELSE $1::timestamp AT TIME ZONE 'UTC' END
$$;
