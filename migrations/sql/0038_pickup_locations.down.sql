-- Service points that left request policies stay out of them. Those that policies allow cannot be
-- deleted any more.
DROP TRIGGER service_point_without_pickup ON service_point;
DROP TRIGGER service_point_deleted ON service_point;
DROP FUNCTION disallow_service_point();

CREATE TABLE request_policy_allowed_service_points (
    source_id uuid NOT NULL CONSTRAINT request_policy_allowed_service_points_source_id_fkey REFERENCES request_policy ON DELETE CASCADE,
    target_id uuid NOT NULL CONSTRAINT request_policy_allowed_service_points_fkey REFERENCES service_point,
    CONSTRAINT request_policy_allowed_service_points_pkey PRIMARY KEY (source_id, target_id)
);
CREATE INDEX request_policy_allowed_service_points_target_id_idx ON request_policy_allowed_service_points (target_id);
CREATE TRIGGER request_policy_allowed_service_points AFTER INSERT OR UPDATE ON request_policy
    FOR EACH ROW EXECUTE FUNCTION link_record('request_policy_allowed_service_points', 'service_point',
        '$.allowedServicePoints ? (@.type() == "object").keyvalue() ? (@.key == "Hold" || @.key == "Page" || @.key == "Recall").value[*]');
UPDATE request_policy SET jsonb = jsonb;
