-- Destroys the list of sessions that ended: copies of their cookies count again.
DROP TABLE staff_sign_out;
