-- The self-check terminals and their passwords are lost.
DROP TABLE self_check_terminal;
DROP FUNCTION take_password_hash();
