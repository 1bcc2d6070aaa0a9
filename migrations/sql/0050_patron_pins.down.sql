-- The PINs are lost.
DROP TABLE patron_pin;
