-- What a patron borrowed or returned since the last notice was sent. The loan is
-- not referenced: it can be deleted while a session still names it.
CREATE TABLE patron_action_session (
    id        uuid  NOT NULL CONSTRAINT patron_action_session_pkey PRIMARY KEY,
    jsonb     jsonb NOT NULL,
    patron_id uuid  GENERATED ALWAYS AS ((jsonb->>'patronId')::uuid) STORED,
    loan_id   uuid  GENERATED ALWAYS AS ((jsonb->>'loanId')::uuid) STORED
);
CREATE INDEX patron_action_session_patron_id_idx ON patron_action_session (patron_id);
CREATE INDEX patron_action_session_loan_id_idx ON patron_action_session (loan_id);
