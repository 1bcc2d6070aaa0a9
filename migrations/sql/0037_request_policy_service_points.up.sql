-- A service point that a request policy allows cannot be deleted. The write of the policy refuses
-- ids of missing ones; this table links those that exist.
CREATE TABLE request_policy_allowed_service_points (
    source_id uuid NOT NULL CONSTRAINT request_policy_allowed_service_points_source_id_fkey REFERENCES request_policy ON DELETE CASCADE,
    target_id uuid NOT NULL CONSTRAINT request_policy_allowed_service_points_fkey REFERENCES service_point,
    CONSTRAINT request_policy_allowed_service_points_pkey PRIMARY KEY (source_id, target_id)
);
CREATE INDEX request_policy_allowed_service_points_target_id_idx ON request_policy_allowed_service_points (target_id);

-- Only these keys are checked to have ids.
CREATE TRIGGER request_policy_allowed_service_points AFTER INSERT OR UPDATE ON request_policy
    FOR EACH ROW EXECUTE FUNCTION link_record('request_policy_allowed_service_points', 'service_point',
        '$.allowedServicePoints ? (@.type() == "object").keyvalue() ? (@.key == "Hold" || @.key == "Page" || @.key == "Recall").value[*]');

-- The trigger links what is named already.
UPDATE request_policy SET jsonb = jsonb;
