CREATE TABLE loccampus (
    id             uuid  NOT NULL CONSTRAINT loccampus_pkey PRIMARY KEY,
    jsonb          jsonb NOT NULL,
    institution_id uuid  GENERATED ALWAYS AS ((jsonb->>'institutionId')::uuid) STORED
        CONSTRAINT loccampus_institution_id_fkey REFERENCES locinstitution
);
CREATE UNIQUE INDEX loccampus_name_key ON loccampus (lower(jsonb->>'name'));
CREATE INDEX loccampus_institution_id_idx ON loccampus (institution_id);
