-- The overdue fine policies and lost item fee policies are lost.

CREATE OR REPLACE FUNCTION link_rules() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM replace_links('circulation_rules_loan_policies', 'loan_policy', NEW.id, rule_policies(NEW.rules, 'l'));
    PERFORM replace_links('circulation_rules_request_policies', 'request_policy', NEW.id, rule_policies(NEW.rules, 'r'));
    PERFORM replace_links('circulation_rules_notice_policies', 'patron_notice_policy', NEW.id, rule_policies(NEW.rules, 'n'));
    RETURN NULL;
END
$$;
DROP TABLE circulation_rules_lost_item_policies, circulation_rules_overdue_fine_policies, lost_item_fee_policy, overdue_fine_policy;
