-- The dates at which open requests expire, so that those in the past are found without a scan.
CREATE INDEX request_expiration_idx ON request (record_time(jsonb->>CASE status
    WHEN 'Open - Awaiting pickup' THEN 'holdShelfExpirationDate' ELSE 'requestExpirationDate' END)) WHERE is_open;
