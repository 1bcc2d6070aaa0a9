-- The hashes of the patrons' PINs (mod-users). They are no part of the patron's record, which many
-- callers read.
CREATE TABLE patron_pin (
    user_id  uuid NOT NULL CONSTRAINT patron_pin_pkey PRIMARY KEY
        CONSTRAINT patron_pin_user_id_fkey REFERENCES users ON DELETE CASCADE,
    pin_hash text NOT NULL
);
