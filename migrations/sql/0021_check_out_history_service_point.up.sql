-- Past check-outs are found by service point, newest first, as by patron and item.
CREATE INDEX check_out_history_service_point_id_idx ON check_out_history (service_point_id, ended_date);
