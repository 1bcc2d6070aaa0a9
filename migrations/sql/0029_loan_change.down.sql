-- Forgets which changes of loans were repeated: a repeat that comes afterwards counts as a new one.
-- Run it only with both services stopped.
DROP TABLE loan_change;
