-- Drops all patron notice policies.
DROP TABLE patron_notice_policy;
