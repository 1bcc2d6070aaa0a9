-- Records that FOLIO's circulation keeps beside loans and requests. Their items, loans, requests and
-- patrons are not referenced: these can be deleted while a record still names them.

-- The check-ins. The table check_in is what repeats are recognised by.
CREATE TABLE check_in_operation (
    id                 uuid        NOT NULL CONSTRAINT check_in_operation_pkey PRIMARY KEY,
    jsonb              jsonb       NOT NULL,
    item_id            uuid        GENERATED ALWAYS AS ((jsonb->>'itemId')::uuid) STORED,
    occurred_date_time timestamptz GENERATED ALWAYS AS (record_time(jsonb->>'occurredDateTime')) STORED
);
CREATE INDEX check_in_operation_item_id_idx ON check_in_operation (item_id);
-- Old ones are found without a scan.
CREATE INDEX check_in_operation_occurred_date_time_idx ON check_in_operation (occurred_date_time);

CREATE TABLE scheduled_notice (
    id            uuid        NOT NULL CONSTRAINT scheduled_notice_pkey PRIMARY KEY,
    jsonb         jsonb       NOT NULL,
    loan_id       uuid        GENERATED ALWAYS AS ((jsonb->>'loanId')::uuid) STORED,
    request_id    uuid        GENERATED ALWAYS AS ((jsonb->>'requestId')::uuid) STORED,
    next_run_time timestamptz GENERATED ALWAYS AS (record_time(jsonb->>'nextRunTime')) STORED
);
CREATE INDEX scheduled_notice_loan_id_idx ON scheduled_notice (loan_id);
CREATE INDEX scheduled_notice_request_id_idx ON scheduled_notice (request_id);
-- Due notices are found without a scan.
CREATE INDEX scheduled_notice_next_run_time_idx ON scheduled_notice (next_run_time);

CREATE TABLE actual_cost_record (
    id      uuid  NOT NULL CONSTRAINT actual_cost_record_pkey PRIMARY KEY,
    jsonb   jsonb NOT NULL,
    loan_id uuid  GENERATED ALWAYS AS ((jsonb->'loan'->>'id')::uuid) STORED
);
CREATE INDEX actual_cost_record_loan_id_idx ON actual_cost_record (loan_id);

CREATE TABLE tlr_feature_toggle_job (
    id    uuid  NOT NULL CONSTRAINT tlr_feature_toggle_job_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);

-- The prints of slips of requests.
CREATE TABLE print_events (
    id         uuid  NOT NULL CONSTRAINT print_events_pkey PRIMARY KEY,
    jsonb      jsonb NOT NULL,
    request_id uuid  GENERATED ALWAYS AS ((jsonb->>'requestId')::uuid) STORED
);
CREATE INDEX print_events_request_id_idx ON print_events (request_id);
