-- Forgets which changes of requests were repeated: a repeat that comes afterwards counts as a new one.
-- Run it only with both services stopped.
DROP TABLE request_change;
