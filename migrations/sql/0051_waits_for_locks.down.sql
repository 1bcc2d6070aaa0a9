-- Destroys which check-outs wait now, and the versions of the instances. Both are reported anew within seconds.
ALTER TABLE check_out_waiting DROP COLUMN waits, DROP COLUMN version;
