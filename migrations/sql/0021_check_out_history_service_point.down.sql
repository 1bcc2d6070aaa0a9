-- Drops an index. No record is lost.
DROP INDEX check_out_history_service_point_id_idx;
