-- The recorded check-ins, scheduled notices, actual cost records, jobs and prints are lost.

DROP TABLE print_events, tlr_feature_toggle_job, actual_cost_record, scheduled_notice, check_in_operation;
