-- Locations name an institution, a campus and a library, and do not reference
-- them: they can be there first.
CREATE TABLE locinstitution (
    id    uuid  NOT NULL CONSTRAINT locinstitution_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX locinstitution_name_key ON locinstitution (lower(jsonb->>'name'));
