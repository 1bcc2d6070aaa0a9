-- Destroys nothing: each turn of the delivery reads all refused events again.
DROP INDEX outbox_waiting_idx;
