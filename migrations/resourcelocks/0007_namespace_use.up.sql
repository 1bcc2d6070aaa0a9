-- Namespaces that no client has used for a time are forgotten.
ALTER TABLE namespace ADD COLUMN used_at timestamptz NOT NULL DEFAULT now();
COMMENT ON COLUMN namespace.used_at IS 'When a claim was stored last, or a client connected, exact to an hour.';
