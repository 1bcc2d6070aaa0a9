CREATE TABLE fixed_due_date_schedule (
    id    uuid  NOT NULL CONSTRAINT fixed_due_date_schedule_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX fixed_due_date_schedule_name_key ON fixed_due_date_schedule (lower(jsonb->>'name'));
