-- Forgets which request policies name which service points; the records stay.
DROP TRIGGER request_policy_allowed_service_points ON request_policy;
DROP TABLE request_policy_allowed_service_points;
