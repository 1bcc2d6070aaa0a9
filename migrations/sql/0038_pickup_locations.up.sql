-- A service point that is deleted, or is no pickup location any more, leaves the request policies that
-- allow it, as in FOLIO. So nothing keeps it from being deleted. A list that becomes empty allows none.
CREATE FUNCTION disallow_service_point() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE request_policy p SET jsonb = jsonb_set(p.jsonb, '{allowedServicePoints}', (
        SELECT jsonb_object_agg(key, CASE jsonb_typeof(value) WHEN 'array' THEN
               (SELECT coalesce(jsonb_agg(v ORDER BY place), '[]')
                  FROM jsonb_array_elements(value) WITH ORDINALITY AS list(v, place) WHERE lower(v #>> '{}') <> OLD.id::text)
               ELSE value END)
          FROM jsonb_each(p.jsonb->'allowedServicePoints')))
     WHERE jsonb_typeof(p.jsonb->'allowedServicePoints') = 'object' AND lower(p.jsonb->>'allowedServicePoints') LIKE '%' || OLD.id || '%';
    RETURN NULL;
END
$$;
CREATE TRIGGER service_point_deleted AFTER DELETE ON service_point
    FOR EACH ROW EXECUTE FUNCTION disallow_service_point();
CREATE TRIGGER service_point_without_pickup AFTER UPDATE ON service_point
    FOR EACH ROW WHEN (NEW.jsonb->'pickupLocation' IS DISTINCT FROM 'true') EXECUTE FUNCTION disallow_service_point();

DROP TRIGGER request_policy_allowed_service_points ON request_policy;
DROP TABLE request_policy_allowed_service_points;
