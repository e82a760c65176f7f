-- Whether this server was a standby when it was started, and has taken the place of another since.
SELECT pg_last_xact_replay_timestamp() IS NOT NULL
