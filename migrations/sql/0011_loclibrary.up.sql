CREATE TABLE loclibrary (
    id        uuid  NOT NULL CONSTRAINT loclibrary_pkey PRIMARY KEY,
    jsonb     jsonb NOT NULL,
    campus_id uuid  GENERATED ALWAYS AS ((jsonb->>'campusId')::uuid) STORED
        CONSTRAINT loclibrary_campus_id_fkey REFERENCES loccampus
);
CREATE UNIQUE INDEX loclibrary_name_key ON loclibrary (lower(jsonb->>'name'));
CREATE INDEX loclibrary_campus_id_idx ON loclibrary (campus_id);
