-- Sessions of staff that ended by a sign-out. A sealed cookie carries a session, so without the row a
-- copy of the cookie would count until the session's longest time is over.
CREATE TABLE staff_sign_out (
    session    uuid        NOT NULL,
    keep_until timestamptz NOT NULL,
    CONSTRAINT staff_sign_out_pkey PRIMARY KEY (session)
);
