"""The one error that the embedded server raises."""


class PostgresError(RuntimeError):
    """PostgreSQL cannot be found, made, started or stopped; the message says what to do."""
