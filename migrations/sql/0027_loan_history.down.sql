-- Destroys the history of all loans.
DROP TRIGGER loan_history ON loan;
DROP FUNCTION add_loan_history();
DROP TABLE loan_history;
