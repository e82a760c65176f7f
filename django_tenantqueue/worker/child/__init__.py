"""A process that claims and runs jobs."""
