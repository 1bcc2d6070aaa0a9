-- A process without a lease asks for the claims of the instance 0, and withdrew the rows that stay
-- for statistics. So each of them has an instance that no process has.
DELETE FROM claim WHERE number < 0;
DELETE FROM claim_resource WHERE number < 0;
INSERT INTO claim (id, instance, number, waits_for, abandon, resources, namespace, owner)
SELECT gen_random_uuid(), gen_random_uuid(), -n, -n - 1, '0', 1, '', '' FROM generate_series(1, 200) n;
INSERT INTO claim_resource (number, position, write, namespace, path, cuts, key)
SELECT -n, 0, n % 2 = 0, '', '', '{0}', (SELECT string_agg(sha256((n::text || i)::bytea), '') FROM generate_series(1, 32) i)
  FROM generate_series(1, 200) n;
