-- The overdue fine policies and lost item fee policies that circulation rules name.

CREATE TABLE overdue_fine_policy (
    id    uuid  NOT NULL CONSTRAINT overdue_fine_policy_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX overdue_fine_policy_name_key ON overdue_fine_policy (lower(jsonb->>'name'));

CREATE TABLE lost_item_fee_policy (
    id    uuid  NOT NULL CONSTRAINT lost_item_fee_policy_pkey PRIMARY KEY,
    jsonb jsonb NOT NULL
);
CREATE UNIQUE INDEX lost_item_fee_policy_name_key ON lost_item_fee_policy (lower(jsonb->>'name'));

CREATE TABLE circulation_rules_overdue_fine_policies (
    source_id uuid NOT NULL,
    target_id uuid NOT NULL CONSTRAINT circulation_rules_overdue_fine_policies_fkey REFERENCES overdue_fine_policy,
    CONSTRAINT circulation_rules_overdue_fine_policies_pkey PRIMARY KEY (source_id, target_id)
);
CREATE TABLE circulation_rules_lost_item_policies (
    source_id uuid NOT NULL,
    target_id uuid NOT NULL CONSTRAINT circulation_rules_lost_item_policies_fkey REFERENCES lost_item_fee_policy,
    CONSTRAINT circulation_rules_lost_item_policies_pkey PRIMARY KEY (source_id, target_id)
);

CREATE OR REPLACE FUNCTION link_rules() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM replace_links('circulation_rules_loan_policies', 'loan_policy', NEW.id, rule_policies(NEW.rules, 'l'));
    PERFORM replace_links('circulation_rules_request_policies', 'request_policy', NEW.id, rule_policies(NEW.rules, 'r'));
    PERFORM replace_links('circulation_rules_notice_policies', 'patron_notice_policy', NEW.id, rule_policies(NEW.rules, 'n'));
    PERFORM replace_links('circulation_rules_overdue_fine_policies', 'overdue_fine_policy', NEW.id, rule_policies(NEW.rules, 'o'));
    PERFORM replace_links('circulation_rules_lost_item_policies', 'lost_item_fee_policy', NEW.id, rule_policies(NEW.rules, 'i'));
    RETURN NULL;
END
$$;
