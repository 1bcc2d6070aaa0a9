-- Destroys nothing but an index.
DROP INDEX request_expiration_idx;
