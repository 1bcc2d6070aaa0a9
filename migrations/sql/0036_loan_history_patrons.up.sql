-- When the patron is taken off a loan, the loan's history loses the patron too, in the same
-- transaction. A proxy is a patron as well.
CREATE OR REPLACE FUNCTION add_loan_history() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    new_id uuid := gen_random_uuid();
    written jsonb := CASE WHEN TG_OP = 'DELETE' THEN jsonb_set(OLD.jsonb, '{action}', '"deleted"', false) ELSE NEW.jsonb END;
BEGIN
    INSERT INTO loan_history (id, jsonb) VALUES (new_id, jsonb_build_object(
        'id', new_id, 'operation', left(TG_OP, 1), 'loan', written,
        'createdDate', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')));
    IF NOT written ? 'userId' THEN
        UPDATE loan_history SET jsonb = jsonb #- '{loan,userId}' #- '{loan,proxyUserId}'
         WHERE loan_id = (written->>'id')::uuid AND jsonb->'loan' ?| ARRAY['userId', 'proxyUserId'];
    END IF;
    RETURN NULL;
END
$$;

-- The loans that have no patron any more.
UPDATE loan_history SET jsonb = jsonb #- '{loan,userId}' #- '{loan,proxyUserId}'
 WHERE jsonb->'loan' ?| ARRAY['userId', 'proxyUserId']
   AND loan_id IN (SELECT loan_id FROM loan_history WHERE NOT jsonb->'loan' ? 'userId');

-- Old entries are found without a scan. Until this transaction ends, writes of loans wait.
CREATE INDEX loan_history_created_date_idx ON loan_history (record_time(jsonb->>'createdDate'));
