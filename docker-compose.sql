-- The databases of docker-compose.yml. Each service has a role and a database of its own,
-- and creates its schemas there. It can connect to no other database. psql runs this file
-- as the superuser at the first start; no service knows the superuser's password.

\set ON_ERROR_STOP on
\getenv storage_password STORAGE_DATABASE_PASSWORD
\getenv locks_password RESOURCE_LOCKS_DATABASE_PASSWORD

REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC;

CREATE ROLE circulation_storage LOGIN PASSWORD :'storage_password';
CREATE DATABASE circulation_storage;
REVOKE ALL ON DATABASE circulation_storage FROM PUBLIC;
GRANT CONNECT, CREATE ON DATABASE circulation_storage TO circulation_storage;

CREATE ROLE resource_locks LOGIN PASSWORD :'locks_password';
CREATE DATABASE resource_locks;
REVOKE ALL ON DATABASE resource_locks FROM PUBLIC;
GRANT CONNECT, CREATE ON DATABASE resource_locks TO resource_locks;
