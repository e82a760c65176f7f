-- What the server's clock shows. Reads no table.
SELECT clock_timestamp()
