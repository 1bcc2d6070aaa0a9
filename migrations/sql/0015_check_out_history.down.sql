-- Drops the whole history of check-outs, and what instances said about waiting.
DROP TABLE check_out_waiting;
DROP TABLE check_out_history;
