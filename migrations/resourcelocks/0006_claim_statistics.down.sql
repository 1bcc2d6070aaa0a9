-- It destroys no data.
UPDATE claim SET instance = '00000000-0000-0000-0000-000000000000' WHERE number < 0;
